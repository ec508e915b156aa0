#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/human.h"
#include "base/status.h"
#include "base/time_text.h"
#include "cli/command.h"
#include "cli/text.h"
#include "engine/window.h"

namespace firstseen::cli {
namespace {

double BytesPerMember(const StoreWindowStats& window) {
  return window.members == 0
             ? 0
             : static_cast<double>(window.bytes) / static_cast<double>(window.members);
}

Json WindowJson(const StoreSetStats& set, const StoreWindowStats& window) {
  return {{"window", FormatWindow(set.options.window, window.window)},
          {"state", window.closed ? "dropped" : "open"},
          {"members", window.members},
          {"bytes", window.bytes},
          {"bytes_per_member", BytesPerMember(window)},
          {"owners", window.owners},
          {"owner_bytes", window.owner_bytes},
          {"bits", set.options.bits},
          {"load_factor", window.load_factor},
          {"false_duplicate_probability", window.false_duplicate_probability},
          {"durability", DurabilityName(set.options.durability)}};
}

double AgeSeconds(absl::Time time) { return absl::ToDoubleSeconds(absl::Now() - time); }

Json AgeJson(std::optional<absl::Time> time) {
  return time.has_value() ? Json(AgeSeconds(*time)) : Json(nullptr);
}

Json StatsJson(const std::vector<StoreSetStats>& sets, const StoreStats& stats) {
  Json list = Json::array();
  for (const StoreSetStats& set : sets) {
    Json json = SetJson(set.name, set.options);
    json["windows"] = Json::array();
    for (const StoreWindowStats& window : set.windows) {
      json["windows"].push_back(WindowJson(set, window));
    }
    list.push_back(std::move(json));
  }
  return {{"sets", list},
          {"memory_bytes", stats.memory_bytes},
          {"owner_bytes", stats.owner_bytes},
          {"log_bytes", stats.log_bytes},
          {"snapshot_bytes", stats.snapshot_bytes},
          {"snapshot_time", stats.snapshot_time
                                ? Json(FormatEventTime(*stats.snapshot_time, absl::UTCTimeZone()))
                                : Json(nullptr)},
          {"snapshot_age_seconds", AgeJson(stats.snapshot_time)},
          {"log_age_seconds", AgeJson(stats.log_time)}};
}

constexpr char kRow[] = "{:<16} {:<10} {:>14} {:>10} {:>9} {:>10} {:>5} {:>5} {:>10}  {}";

void PrintText(const std::vector<StoreSetStats>& sets, const StoreStats& stats) {
  PrintLine(fmt::format(kRow, "set", "window", "members", "memory", "B/member", "owners", "bits",
                        "load", "P(false)", "durability"));
  for (const StoreSetStats& set : sets) {
    for (const StoreWindowStats& window : set.windows) {
      const std::string name = FormatWindow(set.options.window, window.window);
      if (window.closed) {
        PrintLine(fmt::format("{:<16} {:<10} {:>14}", set.name, name, "dropped"));
        continue;
      }
      PrintLine(fmt::format(
          kRow, set.name, name, FormatCount(window.members), FormatBytes(window.bytes),
          fmt::format("{:.2f}", BytesPerMember(window)), FormatBytes(window.owner_bytes),
          set.options.bits, fmt::format("{:.2f}", window.load_factor),
          fmt::format("{:.1e}", window.false_duplicate_probability),
          DurabilityName(set.options.durability)));
    }
    if (set.windows.empty()) PrintLine(fmt::format("{:<16} (no members yet)", set.name));
  }
  if (sets.empty()) PrintLine("(no sets yet; next: firstseen create)");
  PrintLine(fmt::format("memory {}, owners {}, log {}, {}", FormatBytes(stats.memory_bytes),
                        FormatBytes(stats.owner_bytes), FormatBytes(stats.log_bytes),
                        stats.snapshot_time
                            ? fmt::format("snapshot {}, {} old", FormatBytes(stats.snapshot_bytes),
                                          FormatSeconds(AgeSeconds(*stats.snapshot_time)))
                            : "no snapshot yet"));
}

absl::StatusOr<int> Run(const Session& session) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Store> store, OpenStore(session));
  std::vector<std::string> names = {session.set};
  if (session.set.empty()) {
    names = store->ListSets();
  } else {
    RETURN_IF_ERROR(FindSet(*store, session).status());
  }
  std::vector<StoreSetStats> sets;
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(StoreSetStats set, store->SetStats(name));
    sets.push_back(std::move(set));
  }
  const StoreStats stats = store->Stats();
  RETURN_IF_ERROR(store->Close());
  if (session.json) {
    PrintJson(StatsJson(sets, stats));
  } else {
    PrintText(sets, stats);
  }
  return kDone;
}

}  // namespace

void RegisterStats(CLI::App& app, Session& session) {
  CLI::App* command = AddCommand(
      app, session, "stats", "Show members, memory, error probability and file sizes",
      "P(false) is the probability that the window has given a single false duplicate so far.\n"
      "\n"
      "Examples:\n"
      "  firstseen stats --data ./data\n"
      "  firstseen stats --data ./data kyc --json",
      [&session] { return Run(session); });
  AddSet(command, session);
  AddDataOptions(command, session);
  AddJson(command, session);
}

}  // namespace firstseen::cli
