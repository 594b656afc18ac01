"""Gateways that do nothing but pass a request on: what HelmDash's gateway is held to.

Each is a raw ASGI application that uvicorn serves; BENCH_UPSTREAM is where requests go.
"""
