"""Trains the shipped model pair: corpora, tokenizer, target, draft, export, evaluation and card.

Nothing else in the product imports this package; it only writes Hugging Face directories.
"""
