#include "engine/snapshot_load.h"

#include <deque>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"

namespace firstseen {
namespace {

// Sections handed to a worker together, and bytes that may wait for the workers.
constexpr size_t kBatchBytes = 512 << 10;
constexpr size_t kBatchSections = 1024;
constexpr size_t kQueueBytesMax = 32 << 20;
constexpr int kWorkers = 2;

// A shard or owners section and where it goes.
struct Job {
  Window* window = nullptr;
  int bits = 0;
  SnapshotReader::Section section;
};

// Decodes sections into their tables on threads of its own.
class Workers {
 public:
  Workers() {
    for (std::thread& thread : threads_) thread = std::thread([this] { Run(); });
  }
  ~Workers() {
    {
      MutexLock lock(mutex_);
      stopping_ = true;
      changed_.NotifyAll();
    }
    for (std::thread& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // Waits for room; returns the first error of any job so far.
  absl::Status Add(Job job) {
    batch_bytes_ += job.section.payload.size();
    batch_.push_back(std::move(job));
    if (batch_bytes_ < kBatchBytes && batch_.size() < kBatchSections) return absl::OkStatus();
    return HandOver();
  }

  // Waits until all is done.
  absl::Status Finish() {
    RETURN_IF_ERROR(HandOver());
    MutexLock lock(mutex_);
    changed_.Wait(lock, [this] { return queue_.empty() && busy_ == 0; });
    return status_;
  }

  uint64_t members() const { return members_.load(); }
  uint64_t owners() const { return owners_.load(); }

 private:
  struct Batch {
    std::vector<Job> jobs;
    size_t bytes = 0;
  };

  absl::Status HandOver() {
    MutexLock lock(mutex_);
    changed_.Wait(lock, [this] { return queue_bytes_ < kQueueBytesMax || !status_.ok(); });
    if (!status_.ok()) return status_;
    queue_bytes_ += batch_bytes_;
    queue_.push_back({std::move(batch_), batch_bytes_});
    batch_ = {};
    batch_bytes_ = 0;
    changed_.NotifyAll();
    return absl::OkStatus();
  }

  void Run() {
    MutexLock lock(mutex_);
    while (true) {
      changed_.Wait(lock, [this] { return stopping_ || !queue_.empty(); });
      if (queue_.empty()) return;
      const Batch batch = std::move(queue_.front());
      queue_.pop_front();
      ++busy_;
      lock.Unlock();
      absl::Status status;
      for (const Job& job : batch.jobs) {
        status = Do(job);
        if (!status.ok()) break;
      }
      lock.Lock();
      --busy_;
      queue_bytes_ -= batch.bytes;
      if (!status.ok() && status_.ok()) status_ = status;
      changed_.NotifyAll();
    }
  }

  absl::Status Do(const Job& job) {
    if (job.section.type == SectionType::kOwners) {
      ASSIGN_OR_RETURN(const OwnersSection section,
                       DecodeOwnersSection(job.section.payload, job.bits));
      for (const Ownership& ownership : section.owners) job.window->owners->Put(ownership);
      owners_ += section.owners.size();
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(const ShardSection section, DecodeShardSection(job.section.payload, job.bits));
    if (!job.window->members->LoadShard(section.image)) {
      return ResourceExhausted("the snapshot's members do not fit into memory_bytes_max");
    }
    members_ += section.image.fingerprints.size();
    return absl::OkStatus();
  }

  std::vector<Job> batch_;  // the caller's
  size_t batch_bytes_ = 0;
  std::atomic<uint64_t> members_ = 0;
  std::atomic<uint64_t> owners_ = 0;

  Mutex mutex_;
  CondVar changed_;
  std::deque<Batch> queue_ GUARDED_BY(mutex_);
  size_t queue_bytes_ GUARDED_BY(mutex_) = 0;
  int busy_ GUARDED_BY(mutex_) = 0;
  bool stopping_ GUARDED_BY(mutex_) = false;
  absl::Status status_ GUARDED_BY(mutex_);
  std::thread threads_[kWorkers];
};

class Loader {
 public:
  explicit Loader(State* state) : state_(state) {}

  // Takes in one section that is not the footer.
  absl::Status Add(SnapshotReader::Section section) {
    switch (section.type) {
      case SectionType::kSet:
        return AddSet(section.payload);
      case SectionType::kWindow:
        return AddWindow(section.payload);
      case SectionType::kShard:
      case SectionType::kOwners:
        return AddJob(std::move(section));
      case SectionType::kImports:
        return AddImports(section.payload);
      case SectionType::kFooter:
        break;
    }
    return DataLoss("a section has the unknown type {}", static_cast<int>(section.type));
  }

  absl::Status Finish(const FooterSection& footer) {
    RETURN_IF_ERROR(workers_.Finish());
    if (workers_.members() != footer.members || workers_.owners() != footer.owners) {
      return DataLoss("holds {} members and {} owners instead of {} and {}", workers_.members(),
                      workers_.owners(), footer.members, footer.owners);
    }
    return absl::OkStatus();
  }

 private:
  absl::Status AddSet(std::string_view payload) {
    ASSIGN_OR_RETURN(const SetSection section, DecodeSetSection(payload));
    if (section.set != state_->size() || state_->Find(section.name) != nullptr) {
      return DataLoss("set number {} is out of order", section.set);
    }
    state_->Add(section.name, section.options);
    return absl::OkStatus();
  }

  absl::StatusOr<Set*> FindSet(SetId id) {
    Set* set = state_->Find(id);
    if (set == nullptr) return DataLoss("a section belongs to no set");
    return set;
  }

  absl::Status AddWindow(std::string_view payload) {
    ASSIGN_OR_RETURN(const WindowSection section, DecodeWindowSection(payload));
    ASSIGN_OR_RETURN(Set * set, FindSet(section.set));
    Window& window = set->FindOrAdd(section.window);
    window.closed = section.closed;
    window.state_sequence = section.state_sequence;
    return absl::OkStatus();
  }

  absl::Status AddJob(SnapshotReader::Section section) {
    ASSIGN_OR_RETURN(const SectionPlace place, DecodePlace(section.payload));
    ASSIGN_OR_RETURN(Set * set, FindSet(place.set));
    Window* window = &set->FindOrAdd(place.window);
    if (window->members == nullptr) window->members = state_->NewMembers(set->options(), 0);
    if (section.type == SectionType::kOwners && window->owners == nullptr) {
      window->owners = state_->NewOwners();
    }
    return workers_.Add({window, set->options().bits, std::move(section)});
  }

  absl::Status AddImports(std::string_view payload) {
    ASSIGN_OR_RETURN(ImportsSection section, DecodeImportsSection(payload));
    MutexLock lock(state_->imports_mutex());
    Imports& imports = state_->imports()[section.set];
    imports.sequence = section.sequence;
    for (auto& [source, progress] : section.sources) {
      imports.sources[std::move(source)] = std::move(progress);
    }
    return absl::OkStatus();
  }

  State* const state_;
  Workers workers_;
};

absl::StatusOr<FooterSection> LoadSections(SnapshotReader* reader, State* state) {
  Loader loader(state);
  for (uint64_t sections = 0;; ++sections) {
    ASSIGN_OR_RETURN(std::optional<SnapshotReader::Section> section, reader->Next());
    if (!section.has_value()) return DataLoss("ends without its footer");
    if (!section->good) return DataLoss("the section at byte {} is damaged", section->offset);
    if (section->type != SectionType::kFooter) {
      RETURN_IF_ERROR(loader.Add(*std::move(section)));
      continue;
    }
    ASSIGN_OR_RETURN(const FooterSection footer, DecodeFooterSection(section->payload));
    if (footer.sections != sections) return DataLoss("sections are missing");
    ASSIGN_OR_RETURN(section, reader->Next());
    if (section.has_value()) return DataLoss("goes on behind its footer");
    RETURN_IF_ERROR(loader.Finish(footer));
    return footer;
  }
}

}  // namespace

absl::StatusOr<LoadedSnapshot> LoadSnapshot(FileSystem* files, const std::string& path,
                                            State* state) {
  ASSIGN_OR_RETURN(const std::unique_ptr<SnapshotReader> reader, SnapshotReader::Open(files, path));
  const absl::StatusOr<FooterSection> footer = LoadSections(reader.get(), state);
  if (!footer.ok()) return Annotate(footer.status(), path);
  return LoadedSnapshot{reader->header(), *footer, reader->size()};
}

}  // namespace firstseen
