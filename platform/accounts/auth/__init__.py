"""Authentication and permission checks of API and pages."""
