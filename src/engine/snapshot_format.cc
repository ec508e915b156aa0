#include "engine/snapshot_format.h"

#include <charconv>
#include <utility>

#include "base/status.h"
#include "engine/coding.h"
#include "engine/elias_fano.h"
#include "engine/records.h"

namespace firstseen {
namespace {

constexpr std::string_view kNamePrefix = "snapshot-";
constexpr size_t kNameDigits = 20;

template <typename Section>
absl::StatusOr<Section> Done(const ByteReader& in, Section section, const char* what) {
  if (!in.done()) return DataLoss("{} section has a wrong length", what);
  return section;
}

size_t PrintBytes(int bits) { return static_cast<size_t>(bits) / 8; }

// Bytes that hold the leading `depth` bits of a shard's range.
size_t PrefixBytes(int depth) { return (static_cast<size_t>(depth) + 7) / 8; }

}  // namespace

std::string SnapshotName(uint64_t after) {
  return fmt::format("{}{:0{}}", kNamePrefix, after, kNameDigits);
}

std::optional<uint64_t> ParseSnapshotName(std::string_view name) {
  if (name.size() != kNamePrefix.size() + kNameDigits || !name.starts_with(kNamePrefix)) {
    return std::nullopt;
  }
  uint64_t after = 0;
  const auto [end, error] =
      std::from_chars(name.data() + kNamePrefix.size(), name.data() + name.size(), after);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return after;
}

std::string EncodeSection(const SetSection& section) {
  std::string bytes;
  ByteWriter out(&bytes);
  out.Put(section.set);
  out.String(section.name);
  EncodeOptions(section.options, &out);
  return bytes;
}

absl::StatusOr<SetSection> DecodeSetSection(std::string_view payload) {
  ByteReader in(payload);
  SetSection section;
  section.set = in.Get<SetId>();
  section.name = in.String();
  section.options = DecodeOptions(&in);
  return Done(in, std::move(section), "set");
}

std::string EncodeSection(const WindowSection& section) {
  std::string bytes;
  ByteWriter out(&bytes);
  out.Put(section.set);
  out.Put(section.window);
  out.Put(static_cast<uint8_t>(section.closed));
  out.Put(section.state_sequence);
  return bytes;
}

absl::StatusOr<WindowSection> DecodeWindowSection(std::string_view payload) {
  ByteReader in(payload);
  WindowSection section;
  section.set = in.Get<SetId>();
  section.window = in.Get<WindowId>();
  section.closed = in.Get<uint8_t>() != 0;
  section.state_sequence = in.Get<uint64_t>();
  return Done(in, section, "window");
}

std::string EncodeSection(const ShardSection& section, int bits) {
  std::string bytes;
  ByteWriter out(&bytes);
  const ShardImage& image = section.image;
  out.Put(section.set);
  out.Put(section.window);
  out.Put(image.stamp);
  out.Put(static_cast<uint32_t>(image.fingerprints.size()));
  out.Put(static_cast<uint8_t>(image.depth));
  out.Print(image.first, PrefixBytes(image.depth));
  EncodeEliasFano(image.fingerprints, bits, image.depth, &bytes);
  return bytes;
}

absl::StatusOr<ShardSection> DecodeShardSection(std::string_view payload, int bits) {
  ByteReader in(payload);
  ShardSection section;
  ShardImage& image = section.image;
  section.set = in.Get<SetId>();
  section.window = in.Get<WindowId>();
  image.stamp = in.Get<uint64_t>();
  const uint32_t count = in.Get<uint32_t>();
  image.depth = in.Get<uint8_t>();
  if (image.depth > bits) return DataLoss("shard section has a depth of {} bits", image.depth);
  image.first = in.Print(PrefixBytes(image.depth)).Truncated(image.depth);
  if (image.depth == 0) image.first = {};
  if (!in.ok()) return DataLoss("shard section has a wrong length");
  ASSIGN_OR_RETURN(image.fingerprints,
                   DecodeEliasFano(in.rest(), count, bits, image.depth, image.first));
  return section;
}

std::string EncodeSection(const OwnersSection& section, int bits) {
  std::string bytes;
  ByteWriter out(&bytes);
  out.Put(section.set);
  out.Put(section.window);
  out.Put(static_cast<uint32_t>(section.owners.size()));
  for (const Ownership& ownership : section.owners) {
    out.Print(ownership.fingerprint, PrintBytes(bits));
    out.Put(ownership.owner);
    out.Put(ownership.sequence);
    out.Put(ownership.settled_open_ms);
  }
  return bytes;
}

absl::StatusOr<OwnersSection> DecodeOwnersSection(std::string_view payload, int bits) {
  ByteReader in(payload);
  OwnersSection section;
  section.set = in.Get<SetId>();
  section.window = in.Get<WindowId>();
  const uint32_t count = in.Get<uint32_t>();
  for (uint32_t i = 0; i < count && in.ok(); ++i) {
    Ownership ownership;
    ownership.fingerprint = in.Print(PrintBytes(bits));
    ownership.owner = in.Get<uint64_t>();
    ownership.sequence = in.Get<uint64_t>();
    ownership.settled_open_ms = in.Get<int64_t>();
    section.owners.push_back(ownership);
  }
  return Done(in, std::move(section), "owners");
}

std::string EncodeSection(const ImportsSection& section) {
  std::string bytes;
  ByteWriter out(&bytes);
  out.Put(section.set);
  out.Put(section.sequence);
  out.Put(static_cast<uint32_t>(section.sources.size()));
  for (const auto& [source, progress] : section.sources) {
    out.String(source);
    out.String(progress.position);
    out.Put(progress.totals.added);
    out.Put(progress.totals.duplicates);
    out.Put(progress.totals.closed);
  }
  return bytes;
}

absl::StatusOr<ImportsSection> DecodeImportsSection(std::string_view payload) {
  ByteReader in(payload);
  ImportsSection section;
  section.set = in.Get<SetId>();
  section.sequence = in.Get<uint64_t>();
  const uint32_t count = in.Get<uint32_t>();
  for (uint32_t i = 0; i < count && in.ok(); ++i) {
    std::string source(in.String());
    Engine::ImportProgress progress;
    progress.position = in.String();
    progress.totals.added = in.Get<uint64_t>();
    progress.totals.duplicates = in.Get<uint64_t>();
    progress.totals.closed = in.Get<uint64_t>();
    section.sources.emplace_back(std::move(source), std::move(progress));
  }
  return Done(in, std::move(section), "imports");
}

std::string EncodeSection(const FooterSection& section) {
  std::string bytes;
  ByteWriter out(&bytes);
  out.Put(section.sections);
  out.Put(section.members);
  out.Put(section.owners);
  out.Put(section.durable);
  return bytes;
}

absl::StatusOr<FooterSection> DecodeFooterSection(std::string_view payload) {
  ByteReader in(payload);
  FooterSection section;
  section.sections = in.Get<uint64_t>();
  section.members = in.Get<uint64_t>();
  section.owners = in.Get<uint64_t>();
  section.durable = in.Get<uint64_t>();
  return Done(in, section, "footer");
}

absl::StatusOr<SectionPlace> DecodePlace(std::string_view payload) {
  ByteReader in(payload);
  SectionPlace place;
  place.set = in.Get<SetId>();
  place.window = in.Get<WindowId>();
  if (!in.ok()) return DataLoss("section is too short");
  return place;
}

}  // namespace firstseen
