"""View values of the API and the pages. Pure."""
