"""Settings of a project: people, upstreams, care, alerts, exports, and the jobs behind them."""
