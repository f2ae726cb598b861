"""One synthetic table by smartnoise-synth's MST or AIM: the cells of each column in, cells out. Run by the Python of its own environment.

`python synthetic_smartnoise_run.py cells.csv sizes.json mst|aim RHO out.csv`. It takes epsilon and delta: here the epsilon that it turns into this rho
at delta 1e-9. Its domain is what it finds in the cells, not the declared one.
"""

from __future__ import annotations

import json
import sys
import time

DELTA = 1e-9


def main(given: list[str]) -> None:
    """The table is written; a last line says the CPU seconds of the fit and of drawing rows."""
    cells, _, method, rho, out = given
    import pandas as pd
    from snsynth import Synthesizer
    from snsynth.utils import cdp_rho

    low, high = 0.0, 1000.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if cdp_rho(middle, DELTA) < float(rho) else (low, middle)
    frame = pd.read_csv(cells)
    begun = time.process_time()
    maker = Synthesizer.create(method, epsilon=high, delta=DELTA)
    maker.fit(frame, categorical_columns=list(frame.columns), preprocessor_eps=0.0)
    made = maker.sample(len(frame))
    spent = time.process_time() - begun
    pd.DataFrame(made, columns=frame.columns).to_csv(out, index=False)
    print(json.dumps({"seconds": spent, "told": f"epsilon {high:.3f}"}))


if __name__ == "__main__":
    main(sys.argv[1:])
