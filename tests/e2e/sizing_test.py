"""The terms of a plan against what llama-server says it allocates for the same model and load."""
import json
import re
import subprocess
import sys
import unittest

from harness import BUILD, MODEL, Server

MIB = 1 << 20


def planned(context, slots, chunk):
    """Bytes of the plan's items, by name."""
    command = [BUILD / "rowtide", "plan", MODEL, "--device", "dgx-spark", "--engine", "llama_cpp", "--context", context,
               "--concurrency", slots, "--chunk", chunk, "--json"]
    plan = json.loads(subprocess.run([*map(str, command)], check=True, capture_output=True).stdout)
    return {item["name"]: item["bytes"] for pool in plan["pools"] for item in pool["items"]}


def starting(items, words):
    return sum(size for name, size in items.items() if name.startswith(words))


class SizingTest(unittest.TestCase):
    def test_terms_are_what_llama_cpp_allocates(self):
        for context, slots, chunk in ((1024, 2, 512), (2048, 1, 256), (512, 4, 512)):
            with self.subTest(context=context, slots=slots, chunk=chunk):
                with Server("-c", context * slots, "-np", slots, "-b", chunk, "-ub", chunk, "-fa", "on", "-lv", "4",
                            plugin=False) as server:
                    log = server.log()
                items = planned(context, slots, chunk)
                buffers = [float(size) * MIB for size in re.findall(r"model buffer size = +([\d.]+) MiB", log)]
                caches = [float(size) * MIB for size in re.findall(r" KV buffer size = +([\d.]+) MiB", log)]
                states = [float(size) * MIB for size in re.findall(r" RS buffer size = +([\d.]+) MiB", log)]
                compute = [float(size) * MIB for size in re.findall(r"compute buffer size = +([\d.]+) MiB", log)]
                self.assertEqual([2, 2, 1, 1], [len(sizes) for sizes in (buffers, caches, states, compute)], log)

                weights = sum(items[name] for name in ("dense", "shared experts", "routed experts", "embeddings",
                                                       "output head"))
                self.assertLess(abs(weights + 689_536 * 34 - sum(buffers)), 0.01 * sum(buffers))
                rounding = 0.006 * MIB  # of the figures in the log
                self.assertLess(abs(starting(items, "keys and values") - caches[0]), rounding)
                self.assertLess(abs(starting(items, "index keys") - caches[1]), rounding)
                self.assertLess(abs(starting(items, "state, ") - states[0]), rounding)
                scratch = items["activations"] + items["logits"] + items["table rows of a chunk"]
                self.assertLess(abs(scratch - compute[0]), 0.25 * compute[0],
                                f"{scratch / MIB:.1f} MiB planned, {compute[0] / MIB:.1f} MiB allocated")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
