// The signals that ask this program to stop, taken as events instead of ending it.
#pragma once

#include "cli/ui/descriptor.h"

namespace rowtide::cli {

/// From its making to its end SIGINT, SIGTERM and SIGHUP are held back; what is started meanwhile gets them as usual.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  int descriptor() const { return descriptor_.number(); }  // can be polled
  /// One that has come since; 0: none.
  int take() const;

 private:
  ui::Descriptor descriptor_;
};

}  // namespace rowtide::cli
