"""Services of feedback: kept answers, labels, their join and its scores."""
