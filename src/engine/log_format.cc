#include "engine/log_format.h"

#include <fmt/format.h>

#include <cstring>

#include "base/bytes.h"
#include "base/checksum.h"

namespace firstseen {
namespace {

constexpr std::string_view kSegmentMagic = "FSLOGSEG";
constexpr uint32_t kVersion = 1;
constexpr uint32_t kFrameMagic = 0x4d524653;  // "SFRM"
constexpr std::string_view kSegmentSuffix = ".log";
constexpr size_t kSequenceDigits = 20;
constexpr size_t kHeaderChecksumOffset = kSegmentHeaderBytes - 8;

uint64_t FrameSeed(uint64_t segment_first, uint64_t offset) {
  return segment_first * 0x9e3779b97f4a7c15 + offset;
}

uint64_t FrameChecksum(std::string_view frame, uint64_t segment_first, uint64_t offset) {
  return Checksum(frame.substr(sizeof(uint64_t)), FrameSeed(segment_first, offset));
}

// Whether the payload is exactly `count` length-prefixed records.
bool HoldsRecords(std::string_view payload, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    if (payload.size() < kRecordHeaderBytes) return false;
    const uint32_t length = LoadLittle<uint32_t>(payload.data());
    if (length > payload.size() - kRecordHeaderBytes) return false;
    payload.remove_prefix(kRecordHeaderBytes + length);
  }
  return payload.empty();
}

}  // namespace

std::string SegmentName(uint64_t first_sequence) {
  return fmt::format("{:020}{}", first_sequence, kSegmentSuffix);
}

std::optional<uint64_t> ParseSegmentName(std::string_view name) {
  if (name.size() != kSequenceDigits + kSegmentSuffix.size() || !name.ends_with(kSegmentSuffix)) {
    return std::nullopt;
  }
  uint64_t value = 0;
  for (const char c : name.substr(0, kSequenceDigits)) {
    if (c < '0' || c > '9') return std::nullopt;
    if (__builtin_mul_overflow(value, uint64_t{10}, &value) ||
        __builtin_add_overflow(value, static_cast<uint64_t>(c - '0'), &value)) {
      return std::nullopt;
    }
  }
  if (value == 0) return std::nullopt;
  return value;
}

std::string EncodeSegmentHeader(const SegmentHeader& header) {
  std::string out(kSegmentMagic);
  AppendLittle<uint32_t>(&out, kVersion);
  AppendLittle<uint32_t>(&out, kSegmentHeaderBytes);
  AppendLittle<uint64_t>(&out, header.first_sequence);
  AppendLittle<uint64_t>(&out, header.previous_last);
  AppendLittle<uint64_t>(&out, header.durable);
  AppendLittle<uint64_t>(&out, header.segment_bytes);
  AppendLittle<int64_t>(&out, header.begun_ms);
  AppendLittle<uint64_t>(&out, Checksum(out));
  return out;
}

std::optional<SegmentHeader> DecodeSegmentHeader(std::string_view segment,
                                                 uint64_t first_sequence) {
  if (segment.size() < kSegmentHeaderBytes) return std::nullopt;
  const char* bytes = segment.data();
  if (segment.substr(0, kSegmentMagic.size()) != kSegmentMagic ||
      LoadLittle<uint64_t>(bytes + kHeaderChecksumOffset) !=
          Checksum(segment.substr(0, kHeaderChecksumOffset)) ||
      LoadLittle<uint32_t>(bytes + 8) != kVersion) {
    return std::nullopt;
  }
  SegmentHeader header;
  header.first_sequence = LoadLittle<uint64_t>(bytes + 16);
  header.previous_last = LoadLittle<uint64_t>(bytes + 24);
  header.durable = LoadLittle<uint64_t>(bytes + 32);
  header.segment_bytes = LoadLittle<uint64_t>(bytes + 40);
  header.begun_ms = LoadLittle<int64_t>(bytes + 48);
  if (header.first_sequence != first_sequence || header.previous_last >= first_sequence) {
    return std::nullopt;
  }
  return header;
}

uint64_t FrameBytes(uint64_t payload_bytes) {
  return kFrameHeaderBytes + (payload_bytes + kLogAlignment - 1) / kLogAlignment * kLogAlignment;
}

uint64_t FinishFrame(const FrameHeader& header, uint64_t segment_first, uint64_t offset,
                     std::string* frame) {
  const uint64_t payload_bytes = frame->size() - kFrameHeaderBytes;
  frame->resize(FrameBytes(payload_bytes), '\0');
  char* out = frame->data();
  StoreLittle<uint32_t>(out + 8, kFrameMagic);
  StoreLittle<uint32_t>(out + 12, static_cast<uint32_t>(header.kind));
  StoreLittle<uint64_t>(out + 16, payload_bytes);
  StoreLittle<uint64_t>(out + 24, header.first_sequence);
  StoreLittle<uint64_t>(out + 32, header.durable);
  StoreLittle<uint32_t>(out + 40, header.count);
  StoreLittle<uint32_t>(out + 44, header.nonce);
  StoreLittle<uint64_t>(out + 48, header.previous);
  const uint64_t checksum = FrameChecksum(*frame, segment_first, offset);
  StoreLittle<uint64_t>(out, checksum);
  return checksum;
}

std::optional<Frame> DecodeFrame(std::string_view segment, uint64_t segment_first,
                                 uint64_t offset) {
  if (offset > segment.size() || segment.size() - offset < kFrameHeaderBytes) return std::nullopt;
  const char* bytes = segment.data() + offset;
  if (LoadLittle<uint32_t>(bytes + 8) != kFrameMagic) return std::nullopt;
  Frame frame;
  frame.header.payload_bytes = LoadLittle<uint64_t>(bytes + 16);
  const uint64_t room = segment.size() - offset;
  if (frame.header.payload_bytes > room || FrameBytes(frame.header.payload_bytes) > room) {
    return std::nullopt;
  }
  const uint64_t frame_bytes = FrameBytes(frame.header.payload_bytes);
  const std::string_view all = segment.substr(offset, frame_bytes);
  frame.checksum = LoadLittle<uint64_t>(bytes);
  if (frame.checksum != FrameChecksum(all, segment_first, offset)) return std::nullopt;
  frame.header.kind = static_cast<FrameKind>(LoadLittle<uint32_t>(bytes + 12));
  frame.header.first_sequence = LoadLittle<uint64_t>(bytes + 24);
  frame.header.durable = LoadLittle<uint64_t>(bytes + 32);
  frame.header.count = LoadLittle<uint32_t>(bytes + 40);
  frame.header.nonce = LoadLittle<uint32_t>(bytes + 44);
  frame.header.previous = LoadLittle<uint64_t>(bytes + 48);
  frame.payload = all.substr(kFrameHeaderBytes, frame.header.payload_bytes);
  frame.end = offset + frame_bytes;
  const bool known = frame.header.kind == FrameKind::kRecords ||
                     frame.header.kind == FrameKind::kMarker ||
                     frame.header.kind == FrameKind::kSealed;
  if (!known || !HoldsRecords(frame.payload, frame.header.count)) return std::nullopt;
  return frame;
}

}  // namespace firstseen
