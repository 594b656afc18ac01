"""Remediation of a conversation on its way through the gateway.

Before a chat call is sent, its conversation is looked up, remediation takes its step, and the
request is written anew where that asks for it: guidance for this call only, a prompt that stays
for the round, or a fresh start. The client knows nothing of it and need not: it goes on sending
its whole history, and `core.care.restarts` says what of that is sent.

Nothing here may cost a client its answer: when the database is away, the call goes on as the one
before it did, and when anything fails, as it came.

`remediator` is what the gateway calls, and the row of what is done: `stepping` finds the
conversation (`finding`, `known_names`) and takes the step (`steps`, in a thread of `database`),
`step_words` writes the request with it (`writing`), `lengths` looks whether it fits, and
`fresh_starts` shortens one that does not. `recent_restarts` is for times without a database.
"""
