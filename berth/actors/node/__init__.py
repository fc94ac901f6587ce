"""The node actor: the edge behind the socket, ids, and which card a request goes to."""
