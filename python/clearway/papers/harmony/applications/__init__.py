"""Harmony's section 6, "Harmony benefits": one module an application, each a model of a host fed by runs of the
network."""
