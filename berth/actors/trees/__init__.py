"""The trees actor: the processes of holders, watched and where need be ended."""
