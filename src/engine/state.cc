#include "engine/state.h"

#include <algorithm>

#include "base/check.h"
#include "engine/coding.h"

namespace firstseen {
namespace {

auto LowerBound(const std::vector<std::unique_ptr<Window>>& windows, WindowId id) {
  return std::lower_bound(
      windows.begin(), windows.end(), id,
      [](const std::unique_ptr<Window>& window, WindowId value) { return window->id < value; });
}

}  // namespace

void Imports::Apply(uint64_t record_sequence, const ImportBatchRecord& record) {
  if (record_sequence <= sequence) return;
  sequence = record_sequence;
  Engine::ImportProgress& progress = sources[record.source];
  progress.position = record.position;
  progress.totals.added += record.counts.added;
  progress.totals.duplicates += record.counts.duplicates;
  progress.totals.closed += record.counts.closed;
}

void Imports::Apply(uint64_t record_sequence, const ImportsForgottenRecord& record) {
  if (record_sequence <= sequence) return;
  sequence = record_sequence;
  const auto begin = sources.lower_bound(record.prefix);
  auto end = begin;
  while (end != sources.end() && end->first.starts_with(record.prefix)) ++end;
  sources.erase(begin, end);
}

Window* Set::Find(WindowId window) {
  const auto it = LowerBound(windows_, window);
  return it == windows_.end() || (*it)->id != window ? nullptr : it->get();
}

Window& Set::FindOrAdd(WindowId window) {
  const auto it = LowerBound(windows_, window);
  if (it != windows_.end() && (*it)->id == window) return **it;
  auto added = std::make_unique<Window>();
  added->id = window;
  return **windows_.insert(it, std::move(added));
}

uint64_t Set::OpenWindows() const {
  return static_cast<uint64_t>(
      std::count_if(windows_.begin(), windows_.end(),
                    [](const std::unique_ptr<Window>& window) { return !window->closed; }));
}

Set* State::Find(SetId id) const {
  ReaderLock lock(sets_mutex_);
  return id < sets_.size() ? sets_[id].get() : nullptr;
}

Set* State::Find(std::string_view name) const {
  ReaderLock lock(sets_mutex_);
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : it->second;
}

SetId State::size() const {
  ReaderLock lock(sets_mutex_);
  return static_cast<SetId>(sets_.size());
}

std::vector<Set*> State::All() const {
  ReaderLock lock(sets_mutex_);
  std::vector<Set*> sets;
  sets.reserve(sets_.size());
  for (const auto& set : sets_) sets.push_back(set.get());
  return sets;
}

Set* State::Add(std::string_view name, const SetOptions& options) {
  std::string encoded;
  ByteWriter writer(&encoded);
  EncodeOptions(options, &writer);

  WriterLock lock(sets_mutex_);
  FIRSTSEEN_CHECK(!by_name_.contains(name));
  auto& shared = options_[encoded];
  if (shared == nullptr) shared = std::make_shared<const SetOptions>(options);
  sets_.push_back(std::make_unique<Set>(static_cast<SetId>(sets_.size()), name, shared));
  Set* set = sets_.back().get();
  by_name_[set->name()] = set;
  return set;
}

std::unique_ptr<ExactSet> State::NewMembers(const SetOptions& options, uint64_t expected) {
  return std::make_unique<ExactSet>(&arena_,
                                    ExactSet::Options{.bits = options.bits, .expected = expected});
}

}  // namespace firstseen
