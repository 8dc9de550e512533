"""Feedback: kept answers, their labels, and the quality of revisions by scorers."""
