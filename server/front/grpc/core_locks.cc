/* core_locks.cc -- C++, because Abseil has no interface in C. */
#include "grpc/core_locks.h"

#include <absl/synchronization/mutex.h>

void hearth_core_locks_trust(void)
{
    absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
}
