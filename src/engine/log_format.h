// How the log's bytes are laid out; docs/format.md, section "Log", says the same in words.
//
//   segment  = header (64 bytes), frames, zeros up to its preallocated size
//   header   = magic[8] version:u32 size:u32 first:u64 previous_last:u64 durable:u64
//              segment_bytes:u64 begun_ms:i64 checksum:u64
//   frame    = checksum:u64 magic:u32 kind:u32 payload_bytes:u64 first:u64 durable:u64 count:u32
//              nonce:u32 previous:u64 payload, zeros up to a multiple of 8
//   payload  = count x (length:u32 record)
//
// Checksums are XXH3-64. A frame's covers all of it behind the checksum, seeded with the segment's
// first sequence number and the frame's offset, so that a frame is valid in one place only; and it
// names the checksum of the frame before it, so that it is valid behind that one only. The nonce is
// new each time the log is opened: frames that an earlier run left behind a recovery's cut never
// follow what is written there later, whether or not they were overwritten on disk.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace firstseen {

inline constexpr size_t kSegmentHeaderBytes = 64;
inline constexpr size_t kFrameHeaderBytes = 56;
inline constexpr size_t kRecordHeaderBytes = 4;
inline constexpr size_t kLogAlignment = 8;
inline constexpr uint64_t kSegmentBytesMin = 256;
// Where the next segment is made ready before it gets its name.
inline constexpr std::string_view kNextSegmentName = "next-log-segment.tmp";

struct SegmentHeader {
  uint64_t first_sequence = 0;
  uint64_t previous_last = 0;  // last sequence number of the segment before; after a repair less
                               // than first_sequence - 1
  uint64_t durable = 0;        // everything up to it was on disk when this segment was begun
  uint64_t segment_bytes = 0;  // preallocated size of the file
  int64_t begun_ms = 0;        // wall clock when it was begun, milliseconds since 1970; 0 = unknown
};

enum class FrameKind : uint32_t {
  kRecords = 1,
  kMarker = 2,  // no records: says only what is durable (when idle, and on closing)
  kSealed = 3,  // no records: the segment behind this one was on disk, with its name
};

struct FrameHeader {
  FrameKind kind = FrameKind::kRecords;
  uint64_t payload_bytes = 0;   // without padding
  uint64_t first_sequence = 0;  // of its first record; of a marker, of the record to come
  uint64_t durable = 0;         // everything up to it was on disk when this frame was written
  uint32_t count = 0;           // records
  uint32_t nonce = 0;           // of the run of the program that wrote it
  uint64_t previous = 0;        // checksum of the frame before it in the segment; 0 = first one
};

struct Frame {
  FrameHeader header;
  std::string_view payload;
  uint64_t checksum = 0;
  uint64_t end = 0;  // offset of the byte behind it in its segment
};

// "00000000000000000001.log", and back; nullopt for any other name.
std::string SegmentName(uint64_t first_sequence);
std::optional<uint64_t> ParseSegmentName(std::string_view name);

// kSegmentHeaderBytes bytes.
std::string EncodeSegmentHeader(const SegmentHeader& header);
// nullopt when `segment` does not begin with a whole, undamaged header of `first_sequence`.
std::optional<SegmentHeader> DecodeSegmentHeader(std::string_view segment, uint64_t first_sequence);

// Size of a frame with `payload_bytes` of payload, padding included.
uint64_t FrameBytes(uint64_t payload_bytes);
// Completes a frame: `frame` is kFrameHeaderBytes of room and the payload behind it. Pads it and
// fills in the header (its payload_bytes is taken from `frame`). Returns its checksum.
uint64_t FinishFrame(const FrameHeader& header, uint64_t segment_first, uint64_t offset,
                     std::string* frame);
// The frame at `offset`, or nullopt when there is no undamaged one.
std::optional<Frame> DecodeFrame(std::string_view segment, uint64_t segment_first, uint64_t offset);

}  // namespace firstseen
