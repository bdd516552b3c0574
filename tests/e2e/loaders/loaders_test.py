"""Whether Rowtide reads what the engines' own loaders read: row ids and rows, bit for bit, against the code of
transformers and SGLang as published. See docs/formats.md for what is compared; `make test-loaders` runs it.

    loaders_test.py [--tidepool FOLDER] [--without-sglang] --deepseek-tokenizer FILE
"""
import argparse
import os
import pathlib
import sys
import tempfile
import time
import warnings

import rowtide


def with_transformers(account, scratch, options):
    import with_transformers as part
    import transformers
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    return part.compare(account, scratch, options.tidepool)


def with_sglang(account, scratch, options):
    import with_sglang as part
    checkpoints = {"BF16 table": scratch / "bf16-0", "FP8 table": scratch / "fp8-0"}  # with_transformers made them
    return part.compare(account, scratch, options.deepseek_tokenizer, checkpoints)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--deepseek-tokenizer", metavar="FILE", type=pathlib.Path, required=True,
                        help="tokenizer.json of DeepSeek-V3")
    parser.add_argument("--tidepool", metavar="FOLDER", default=os.environ.get("ROWTIDE_TIDEPOOL_SAFETENSORS"),
                        help="the safetensors form of models/tidepool.gguf, to be compared too")
    parser.add_argument("--without-sglang", action="store_true", help="compares with transformers alone")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    os.environ.update(HF_HUB_OFFLINE="1", OMP_NUM_THREADS="1")  # PyTorch's second thread only waits, and costs a core

    account, parts = rowtide.Account(), [with_transformers] + ([] if options.without_sglang else [with_sglang])
    with tempfile.TemporaryDirectory() as scratch:
        for part in parts:
            started = time.monotonic()
            account.attempt(part.__name__, part, pathlib.Path(scratch), options)
            print(f"{part.__name__}: {time.monotonic() - started:.0f} s", file=sys.stderr)
    account.report()
    return 1 if account.differences else 0


if __name__ == "__main__":
    sys.exit(main())
