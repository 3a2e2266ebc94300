"""Imported for its effect, first: jsonschema starts without a grammar that nothing here needs.

Where `rfc3987_syntax` is installed (Jupyter's server brings it), jsonschema compiles it at import:
more than a second of each process, to check the format of addresses that our schemas do not have.
"""

import sys

sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]  # None: "not to be found"
