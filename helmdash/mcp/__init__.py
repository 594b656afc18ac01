"""The MCP face: agents read and act over Streamable HTTP at `/mcp` (ADR 14).

`app` stands at the door (key, host, body), `transport` keeps the official SDK's server running,
`server` is the only module that imports the SDK, `tools` and `resources` say what there is. Each
tool and each resource is one call into operations or queries.
"""
