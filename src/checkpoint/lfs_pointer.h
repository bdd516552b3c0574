// Git LFS pointers: short texts that a clone without Git LFS leaves where a repository's large files belong.
#pragma once

#include "io/file.h"
#include "rowtide/result.h"

namespace rowtide::checkpoint {

/// kMalformed, with what to do, for a file of a checkpoint that is such a pointer; errors of reading the file. Reads
/// nothing of a file that is longer than a pointer can be.
Result<void> refuse_lfs_pointer(const io::File& file);

}  // namespace rowtide::checkpoint
