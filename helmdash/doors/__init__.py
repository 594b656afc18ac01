"""What every face does with a request before it is its own: who asks, and the body within limits.

Below the faces, so that one key, one limit and one bad body are the same wherever they come in.
The faces put what is raised here (`faults`) into their own protocols.
"""
