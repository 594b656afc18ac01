"""Services that are no upstreams of models: sign-in, receivers of traces, Apprise."""
