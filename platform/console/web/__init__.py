"""The home page, navigation, and the page of an unknown address."""
