"""The one HTTP client: calls to upstreams, guarded, retried and told in full.

Beside operations: imports core, providers and conf. Nothing else in HelmDash calls out.
"""
