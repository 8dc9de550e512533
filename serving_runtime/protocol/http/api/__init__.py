"""The HTTP API: routes and the views behind them."""
