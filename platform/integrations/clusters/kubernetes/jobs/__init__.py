"""Jobs on a cluster: questions about a model, and replays."""
