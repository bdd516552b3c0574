"""The row stores that are compared: each opens the file, gathers rows by id and is closed again."""
import ctypes
import glob
import importlib.util
import mmap
import os

import numpy


class Rowtide:
    """Through the C ABI."""
    name = "rowtide"
    library = None  # a path, set by compare.py

    def __init__(self, table):
        self.c = ctypes.CDLL(self.library)
        self.c.rowtide_error_message.restype = ctypes.c_char_p
        for verb in ("table_at", "store_open", "reader_open", "reader_read"):
            getattr(self.c, "rowtide_" + verb).restype = ctypes.c_void_p
        self.table, self.store, self.reader = (ctypes.c_void_p() for _ in range(3))
        self.row_bytes = table.row_bytes
        # Only bytes are asked for: any row format of that length serves.
        self.check(self.c.rowtide_table_at(b"rows", os.fsencode(table.path), ctypes.c_uint64(0),
                                           ctypes.c_uint64(table.rows), ctypes.c_uint64(table.row_bytes // 2), b"f16",
                                           ctypes.c_uint32(1), ctypes.byref(self.table)))
        self.check(self.c.rowtide_store_open(self.table, None, ctypes.byref(self.store)))
        self.check(self.c.rowtide_reader_open(self.store, ctypes.byref(self.reader)))
        self.read = self.c.rowtide_reader_read
        self.read.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_int32, ctypes.c_void_p,
                              ctypes.c_uint64]

    def check(self, error):
        if error:
            raise SystemExit("rowtide: " + self.c.rowtide_error_message(ctypes.c_void_p(error)).decode())

    def gather(self, ids, out):
        self.check(self.read(self.reader, ids.ctypes.data, len(ids), 0, out.ctypes.data, out.nbytes))
        return out

    def close(self):
        self.c.rowtide_reader_close(self.reader)
        self.c.rowtide_store_close(self.store)
        self.c.rowtide_table_close(self.table)


class FreeToken:
    """Its row store alone: the extension is loaded by its path, as the package itself wants a GPU's libraries."""
    name = "freetoken"

    def __init__(self, table):
        import torch  # noqa: F401  the extension's symbols
        package = importlib.util.find_spec("freetoken").submodule_search_locations[0]
        path = glob.glob(os.path.join(package, "kernel", "_row_store*.so"))[0]
        spec = importlib.util.spec_from_file_location("_row_store", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        self.store = module.RowStore([table.path], [0], [0], table.rows, table.row_bytes, table.row_bytes, True)

    def gather(self, ids, out):
        self.store.stage_rows(ids.ctypes.data, len(ids), out.ctypes.data)
        self.store.flush()
        return out

    def close(self):
        self.store = None


class EngramDb:
    name = "engramdb"

    def __init__(self, table):
        import engramdb
        self.store = engramdb.Store(table.folder, 1, table.rows, table.row_bytes)

    def gather(self, ids, out):
        return numpy.frombuffer(self.store.fetch(ids), dtype=numpy.uint8)

    def prepare(self, ids):
        return ids.tolist()  # it takes a list; making one is not timed

    def close(self):
        self.store.close()
        self.store = None


class Mapped:
    """A gather by numpy from a mapping of the file: what is at hand without any package."""
    name = "mmap"

    def __init__(self, table):
        self.file = open(table.path, "rb")
        self.view = mmap.mmap(self.file.fileno(), 0, prot=mmap.PROT_READ)
        self.rows = numpy.frombuffer(self.view, dtype=numpy.uint8, count=table.rows * table.row_bytes)
        self.rows = self.rows.reshape(table.rows, table.row_bytes)

    def gather(self, ids, out):
        return numpy.take(self.rows, ids, axis=0, out=out.reshape(len(ids), -1), mode="clip")

    def close(self):
        del self.rows
        self.view.close()
        self.file.close()


ALL = [Rowtide, FreeToken, EngramDb, Mapped]
