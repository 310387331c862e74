"""Connections that the caller passes as ``connection=``, in the caller's transaction."""
