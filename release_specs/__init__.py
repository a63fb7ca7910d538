"""What is published: the language in which a statistician writes a release.

Here are the spec models, the shape of the data (attributes, hierarchies, domain, margins), the loader that turns
YAML text into a spec or a plain list of mistakes, and small complete example specs. Every other room but
`mechanisms` may import this one; it imports none of them.
"""
