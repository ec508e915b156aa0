#include "engine/records.h"

#include <utility>

#include "base/status.h"

namespace firstseen {
namespace {

enum class RecordType : uint8_t {
  kSetCreated = 1,
  kAdded = 2,
  kRemoved = 3,
  kSettled = 4,
  kWindowDropped = 5,
  kWindowReopened = 6,
  kImportBatch = 7,
  kImportsForgotten = 8,
  kOpenTime = 9,
};

// Which owners a window of an import batch has.
enum class ImportedOwners : uint8_t { kNone = 0, kUnsettled = 1, kSettled = 2 };

ImportedOwners OwnersOf(const ImportBatchRecord::Window& window) {
  if (window.owners.empty()) return ImportedOwners::kNone;
  return window.settled_open_ms.has_value() ? ImportedOwners::kSettled : ImportedOwners::kUnsettled;
}

size_t PrintBytes(int bits) { return static_cast<size_t>(bits) / 8; }

// Writes one kind of record each.
struct Encoder {
  ByteWriter out;
  size_t print_bytes;

  void Start(RecordType type) { out.Put(static_cast<uint8_t>(type)); }
  void Start(RecordType type, SetId set) {
    Start(type);
    out.Put(set);
  }
  void Start(RecordType type, SetId set, WindowId window) {
    Start(type, set);
    out.Put(window);
  }

  void operator()(const SetCreatedRecord& r) {
    Start(RecordType::kSetCreated, r.set);
    out.String(r.name);
    EncodeOptions(r.options, &out);
  }
  void operator()(const AddedRecord& r) {
    Start(RecordType::kAdded, r.set, r.window);
    out.Put(r.owner);
    out.Print(r.fingerprint, print_bytes);
  }
  void operator()(const RemovedRecord& r) {
    Start(RecordType::kRemoved, r.set, r.window);
    out.Print(r.fingerprint, print_bytes);
  }
  void operator()(const SettledRecord& r) {
    Start(RecordType::kSettled, r.set, r.window);
    out.Put(r.owner);
    out.Put(r.open_ms);
    out.Print(r.fingerprint, print_bytes);
  }
  void operator()(const WindowDroppedRecord& r) {
    Start(RecordType::kWindowDropped, r.set, r.window);
  }
  void operator()(const WindowReopenedRecord& r) {
    Start(RecordType::kWindowReopened, r.set, r.window);
  }
  void operator()(const ImportBatchRecord& r) {
    Start(RecordType::kImportBatch, r.set);
    out.String(r.source);
    out.String(r.position);
    out.Put(r.counts.added);
    out.Put(r.counts.duplicates);
    out.Put(r.counts.closed);
    out.Put(static_cast<uint8_t>(print_bytes));
    out.Put(static_cast<uint32_t>(r.windows.size()));
    for (const ImportBatchRecord::Window& window : r.windows) {
      out.Put(window.window);
      out.Put(static_cast<uint32_t>(window.added.size()));
      const ImportedOwners owners = OwnersOf(window);
      out.Put(static_cast<uint8_t>(owners));
      if (owners == ImportedOwners::kSettled) out.Put(*window.settled_open_ms);
      for (const Fingerprint& print : window.added) out.Print(print, print_bytes);
      for (uint64_t owner : window.owners) out.Put(owner);
    }
  }
  void operator()(const ImportsForgottenRecord& r) {
    Start(RecordType::kImportsForgotten, r.set);
    out.String(r.prefix);
  }
  void operator()(const OpenTimeRecord& r) {
    Start(RecordType::kOpenTime);
    out.Put(r.open_ms);
  }
};

Fingerprint TakePrint(ByteReader* in) { return in->Print(in->rest().size()); }

SetCreatedRecord DecodeSetCreated(ByteReader* in) {
  SetCreatedRecord r;
  r.set = in->Get<SetId>();
  r.name = in->String();
  r.options = DecodeOptions(in);
  return r;
}

AddedRecord DecodeAdded(ByteReader* in) {
  AddedRecord r;
  r.set = in->Get<SetId>();
  r.window = in->Get<WindowId>();
  r.owner = in->Get<uint64_t>();
  r.fingerprint = TakePrint(in);
  return r;
}

RemovedRecord DecodeRemoved(ByteReader* in) {
  RemovedRecord r;
  r.set = in->Get<SetId>();
  r.window = in->Get<WindowId>();
  r.fingerprint = TakePrint(in);
  return r;
}

SettledRecord DecodeSettled(ByteReader* in) {
  SettledRecord r;
  r.set = in->Get<SetId>();
  r.window = in->Get<WindowId>();
  r.owner = in->Get<uint64_t>();
  r.open_ms = in->Get<int64_t>();
  r.fingerprint = TakePrint(in);
  return r;
}

ImportBatchRecord DecodeImportBatch(ByteReader* in) {
  ImportBatchRecord r;
  r.set = in->Get<SetId>();
  r.source = in->String();
  r.position = in->String();
  r.counts.added = in->Get<uint64_t>();
  r.counts.duplicates = in->Get<uint64_t>();
  r.counts.closed = in->Get<uint64_t>();
  const size_t print_bytes = in->Get<uint8_t>();
  const uint32_t windows = in->Get<uint32_t>();
  for (uint32_t i = 0; i < windows && in->ok(); ++i) {
    ImportBatchRecord::Window window;
    window.window = in->Get<WindowId>();
    const uint32_t count = in->Get<uint32_t>();
    const auto owners = static_cast<ImportedOwners>(in->Get<uint8_t>());
    if (owners > ImportedOwners::kSettled) in->Fail();
    const bool owned = owners != ImportedOwners::kNone;
    if (owners == ImportedOwners::kSettled) window.settled_open_ms = in->Get<int64_t>();
    if (print_bytes == 0) in->Fail();  // the count would then cost no bytes, whatever it says
    for (uint32_t j = 0; j < count && in->ok(); ++j) window.added.push_back(in->Print(print_bytes));
    for (uint32_t j = 0; j < count && owned && in->ok(); ++j) {
      window.owners.push_back(in->Get<uint64_t>());
    }
    r.windows.push_back(std::move(window));
  }
  return r;
}

template <typename WindowRecord>
WindowRecord DecodeWindowRecord(ByteReader* in) {
  WindowRecord r;
  r.set = in->Get<SetId>();
  r.window = in->Get<WindowId>();
  return r;
}

absl::StatusOr<Record> DecodeBody(RecordType type, ByteReader* in) {
  switch (type) {
    case RecordType::kSetCreated:
      return DecodeSetCreated(in);
    case RecordType::kAdded:
      return DecodeAdded(in);
    case RecordType::kRemoved:
      return DecodeRemoved(in);
    case RecordType::kSettled:
      return DecodeSettled(in);
    case RecordType::kWindowDropped:
      return DecodeWindowRecord<WindowDroppedRecord>(in);
    case RecordType::kWindowReopened:
      return DecodeWindowRecord<WindowReopenedRecord>(in);
    case RecordType::kImportBatch:
      return DecodeImportBatch(in);
    case RecordType::kImportsForgotten: {
      ImportsForgottenRecord r;
      r.set = in->Get<SetId>();
      r.prefix = in->String();
      return r;
    }
    case RecordType::kOpenTime:
      return OpenTimeRecord{in->Get<int64_t>()};
  }
  return DataLoss("record type {} is unknown; a newer firstseen may have written it",
                  static_cast<int>(type));
}

}  // namespace

std::string EncodeRecord(const Record& record, int bits) {
  std::string bytes;
  std::visit(Encoder{ByteWriter(&bytes), PrintBytes(bits)}, record);
  return bytes;
}

void EncodeAdded(const AddedRecord& record, int bits, std::string* out) {
  out->clear();
  Encoder{ByteWriter(out), PrintBytes(bits)}(record);
}

absl::StatusOr<Record> DecodeRecord(std::string_view bytes) {
  ByteReader in(bytes);
  const auto type = static_cast<RecordType>(in.Get<uint8_t>());
  ASSIGN_OR_RETURN(Record record, DecodeBody(type, &in));
  if (!in.done()) {
    return DataLoss("record of type {} has a wrong length of {} bytes", static_cast<int>(type),
                    bytes.size());
  }
  return record;
}

std::optional<SetId> SetOf(const Record& record) {
  return std::visit(
      [](const auto& one) -> std::optional<SetId> {
        if constexpr (std::is_same_v<std::decay_t<decltype(one)>, OpenTimeRecord>) {
          return std::nullopt;
        } else {
          return one.set;
        }
      },
      record);
}

void EncodeOptions(const SetOptions& options, ByteWriter* out) {
  out->Put(static_cast<uint8_t>(options.window));
  out->Put(static_cast<uint8_t>(options.member_encoding));
  out->Put(static_cast<uint8_t>(options.durability));
  out->Put(static_cast<uint8_t>(options.bits));
  out->Put(options.expected);
  out->String(options.time_zone);
  out->Put(static_cast<uint32_t>(options.fields.size()));
  for (const FieldOptions& field : options.fields) {
    out->String(field.name);
    out->Put(field.normalise);
  }
}

SetOptions DecodeOptions(ByteReader* in) {
  SetOptions options;
  options.window = static_cast<WindowKind>(in->Get<uint8_t>());
  options.member_encoding = static_cast<MemberEncoding>(in->Get<uint8_t>());
  options.durability = static_cast<Durability>(in->Get<uint8_t>());
  options.bits = in->Get<uint8_t>();
  options.expected = in->Get<uint64_t>();
  options.time_zone = in->String();
  const uint32_t fields = in->Get<uint32_t>();
  for (uint32_t i = 0; i < fields && in->ok(); ++i) {
    FieldOptions field;
    field.name = in->String();
    field.normalise = in->Get<uint32_t>();
    options.fields.push_back(std::move(field));
  }
  return options;
}

}  // namespace firstseen
