"""Counting words, in two chapters."""
