// A Store over an open engine: members become fingerprints and tokens owners on their way in.
#pragma once

#include <memory>

#include "absl/time/time.h"
#include "base/clock.h"
#include "engine/engine.h"
#include "keys/keyring.h"
#include "store/store.h"

namespace firstseen {

// `keys` must be those of the engine. `clock` must outlive the store. `future_max`: see
// EmbeddedStoreOptions.
std::unique_ptr<Store> NewEngineStore(std::unique_ptr<Engine> engine, Keyring keys,
                                      const Clock* clock, absl::Duration future_max);

}  // namespace firstseen
