"""`nightherd container`: the image that agents run in, and the containers that there are."""
