"""One call to an upstream and back, as a row of stages with plain values in between.

`preparing` writes the upstream's request (an `Attempt`), `sending` sends it and reads what comes
back (an `UpstreamReply`), `answering` and `relaying` tell the client, and `recording` hands the
record over. `forwarder` is the row. No stage knows the one before it.
"""
