"""Console: home, navigation, and the page of an unknown address."""
