"""HTTP API: routes and views."""
