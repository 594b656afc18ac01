"""Access: keys, members, sign-in, what a project allows, and who asks for what is not there."""
