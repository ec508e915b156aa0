#include "engine/snapshot_repair.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/status.h"
#include "engine/snapshot_format.h"

namespace firstseen {
namespace {

// Goes through a snapshot and keeps what makes sense.
class Salvage {
 public:
  Salvage(SnapshotReader* reader, std::string path) : reader_(reader), path_(std::move(path)) {}

  // `writer`: where good sections go; may be null.
  absl::Status Run(SnapshotWriter* writer, SetId sets_min) {
    writer_ = writer;
    if (!reader_->header_good()) Lose("the header is damaged; settled owners are kept longer");
    while (!complete_) {
      const uint64_t offset = reader_->offset();
      absl::StatusOr<std::optional<SnapshotReader::Section>> section = reader_->Next();
      if (!section.ok() && !absl::IsDataLoss(section.status())) return section.status();
      if (!section.ok() || !section->has_value()) {
        Lose(
            fmt::format("the file ends within or before a section at byte {}; what followed is "
                        "lost",
                        offset));
        break;
      }
      const absl::Status kept = (*section)->good ? Keep(**section) : DataLoss("is damaged");
      if (absl::IsDataLoss(kept)) {
        Lose(fmt::format("the section at byte {} ({} bytes) {}; what it held is lost", offset,
                         (*section)->payload.size(), Message(kept)));
      } else {
        RETURN_IF_ERROR(kept);
      }
    }
    if (complete_ && (members_ != expected_.members || owners_ != expected_.owners)) {
      Lose(fmt::format("lost are {} of {} members and {} of {} owners",
                       expected_.members - members_, expected_.members, expected_.owners - owners_,
                       expected_.owners));
    }
    return losses_.empty() ? absl::OkStatus() : MakePlaceholders(sets_min);
  }

  FooterSection Footer() const {
    return {.sections = writer_->sections(),
            .members = members_,
            .owners = owners_,
            .durable = highest_};
  }
  const std::vector<std::string>& losses() const { return losses_; }
  uint64_t highest() const { return highest_; }
  SetId sets() const { return sets_; }

 private:
  void Lose(std::string_view what) { losses_.push_back(fmt::format("{}: {}", path_, what)); }

  absl::Status Write(SectionType type, std::string_view payload) {
    return writer_ == nullptr ? absl::OkStatus() : writer_->Write(type, payload);
  }

  // DataLoss: this section cannot be kept.
  absl::Status Keep(const SnapshotReader::Section& section) {
    switch (section.type) {
      case SectionType::kSet:
        return KeepSet(section.payload);
      case SectionType::kWindow: {
        ASSIGN_OR_RETURN(const WindowSection window, DecodeWindowSection(section.payload));
        RETURN_IF_ERROR(FindBits(window.set).status());
        Seen(window.state_sequence);
        break;
      }
      case SectionType::kShard: {
        ASSIGN_OR_RETURN(const SectionPlace place, DecodePlace(section.payload));
        ASSIGN_OR_RETURN(const int bits, FindBits(place.set));
        ASSIGN_OR_RETURN(const ShardSection shard, DecodeShardSection(section.payload, bits));
        members_ += shard.image.fingerprints.size();
        Seen(shard.image.stamp);
        break;
      }
      case SectionType::kOwners: {
        ASSIGN_OR_RETURN(const SectionPlace place, DecodePlace(section.payload));
        ASSIGN_OR_RETURN(const int bits, FindBits(place.set));
        ASSIGN_OR_RETURN(const OwnersSection owners, DecodeOwnersSection(section.payload, bits));
        owners_ += owners.owners.size();
        break;
      }
      case SectionType::kImports: {
        ASSIGN_OR_RETURN(const ImportsSection imports, DecodeImportsSection(section.payload));
        Seen(imports.sequence);
        break;
      }
      case SectionType::kFooter: {
        ASSIGN_OR_RETURN(expected_, DecodeFooterSection(section.payload));
        Seen(expected_.durable);
        complete_ = true;
        return absl::OkStatus();
      }
      default:
        return DataLoss("has an unknown type");
    }
    return Write(section.type, section.payload);
  }

  absl::Status KeepSet(std::string_view payload) {
    ASSIGN_OR_RETURN(const SetSection set, DecodeSetSection(payload));
    if (set.set < sets_) return DataLoss("repeats a set");
    RETURN_IF_ERROR(MakePlaceholders(set.set));
    bits_[sets_++] = set.options.bits;
    return Write(SectionType::kSet, payload);
  }

  absl::Status MakePlaceholders(SetId sets) {
    for (; sets_ < sets; ++sets_) {
      SetSection lost{.set = sets_, .name = fmt::format("lost-{}", sets_), .options = {}};
      lost.options.fields = {{.name = "unknown"}};
      lost.options.bits = 128;  // takes fingerprints of any width that the log may hold
      RETURN_IF_ERROR(Write(SectionType::kSet, EncodeSection(lost)));
      Lose(fmt::format("set number {} is lost; {} takes its place, with what the log holds of it",
                       sets_, lost.name));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<int> FindBits(SetId set) const {
    const auto it = bits_.find(set);
    if (it == bits_.end()) return DataLoss("belongs to a set that is lost");
    return it->second;
  }

  void Seen(uint64_t sequence) { highest_ = std::max(highest_, sequence); }

  SnapshotReader* const reader_;
  const std::string path_;
  SnapshotWriter* writer_ = nullptr;
  std::vector<std::string> losses_;
  SetId sets_ = 0;
  absl::flat_hash_map<SetId, int> bits_;  // of sets that are not lost
  uint64_t members_ = 0;
  uint64_t owners_ = 0;
  uint64_t highest_ = 0;
  bool complete_ = false;  // the footer is there
  FooterSection expected_;
};

}  // namespace

absl::StatusOr<SnapshotDamage> RepairSnapshot(FileSystem* files, const std::string& directory,
                                              uint64_t after, SetId sets_min, bool apply) {
  const std::string path = directory + "/" + SnapshotName(after);
  SnapshotDamage damage;
  {
    ASSIGN_OR_RETURN(const auto reader, SnapshotReader::OpenDamaged(files, path));
    Salvage salvage(reader.get(), path);
    RETURN_IF_ERROR(salvage.Run(nullptr, sets_min));
    damage = {salvage.losses(), std::max(after, salvage.highest()), salvage.sets()};
  }
  if (damage.losses.empty() || !apply) return damage;
  ASSIGN_OR_RETURN(const auto reader, SnapshotReader::OpenDamaged(files, path));
  const SnapshotHeader header =
      reader->header_good() ? reader->header() : SnapshotHeader{.after = after};
  ASSIGN_OR_RETURN(const std::unique_ptr<SnapshotWriter> writer,
                   SnapshotWriter::Create(files, directory, header));
  Salvage salvage(reader.get(), path);
  RETURN_IF_ERROR(salvage.Run(writer.get(), sets_min));
  RETURN_IF_ERROR(writer->Publish(salvage.Footer()));
  return damage;
}

}  // namespace firstseen
