// Repair: says what is damaged and what that costs; cuts the damaged part away when told to.
#include <utility>

#include "base/status.h"
#include "engine/engine_impl.h"
#include "engine/log_reader.h"

namespace firstseen {

absl::StatusOr<std::vector<std::string>> Engine::Repair(const EngineOptions& options, bool apply) {
  RETURN_IF_ERROR(CheckMeta(options));
  ASSIGN_OR_RETURN(const std::unique_ptr<FileLock> lock,
                   options.files->Lock(LockPath(options.directory), options.holder));
  std::vector<std::string> losses;
  ASSIGN_OR_RETURN(const std::vector<uint64_t> snapshots,
                   ListSnapshots(options.files, options.directory));
  const uint64_t after = snapshots.empty() ? 0 : snapshots.back();
  const auto ignore = [](uint64_t, std::string_view) { return absl::OkStatus(); };
  ASSIGN_OR_RETURN(const LogContents log, ReadLog(options.files, options.directory, after, ignore));
  if (log.damage.has_value()) losses.emplace_back(Message(DamageStatus(*log.damage)));
  if (apply && !losses.empty()) return DamageStatus(*log.damage);
  return losses;
}

}  // namespace firstseen
