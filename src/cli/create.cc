#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/command.h"
#include "cli/text.h"
#include "keys/normalise_spec.h"

namespace firstseen::cli {
namespace {

struct Flags {
  SetOptions set;
  std::vector<std::string> fields;
  std::string normalise;
};

void PrintResult(const Session& session, const SetOptions& options) {
  if (session.json) {
    Json json = SetJson(session.set, options);
    PrintJson(json);
    return;
  }
  PrintLine(fmt::format("set {}: window {}, time zone {}, {} bits, durability {}, members as {}",
                        session.set, WindowKindName(options.window), options.time_zone,
                        options.bits, DurabilityName(options.durability),
                        MemberEncodingName(options.member_encoding)));
  for (const FieldOptions& field : options.fields) {
    PrintLine(fmt::format("  field {}: {}", field.name, FormatNormalisation(field.normalise)));
  }
}

absl::StatusOr<int> Run(const Session& session, Flags flags) {
  absl::StatusOr<std::vector<FieldOptions>> fields =
      ParseNormaliseSpec(flags.normalise, flags.fields);
  if (!fields.ok()) return UsageError(fields.status());
  flags.set.fields = *std::move(fields);
  ASSIGN_OR_RETURN(const std::unique_ptr<Store> store, OpenStore(session));
  const absl::Status created = store->CreateSet(session.set, flags.set);
  // The command line contradicts what a set may be, or what this one is.
  if (absl::IsInvalidArgument(created) || absl::IsAlreadyExists(created)) {
    return UsageError(created);
  }
  RETURN_IF_ERROR(created);
  ASSIGN_OR_RETURN(const SetOptions options, store->Options(session.set));
  RETURN_IF_ERROR(store->Close());
  PrintResult(session, options);
  Note(session, "these choices are fixed now; check them with a few real rows before you import");
  return kDone;
}

constexpr char kFooter[] =
    "Normalisations (recorded with the set; which apply is a matter of the billing contract):\n"
    "  trim, width, zero-width       any field\n"
    "  x-check-digit, id-15-to-18    fields whose name says id number (id_no, cert_no, ...)\n"
    "  name-dot                      fields whose name says person's name (name, real_name, ...)\n"
    "  opaque                        bytes as they are, for encrypted fields\n"
    "Or field by field: 'name:trim,name-dot;id_no:trim,id-15-to-18'.\n"
    "\n"
    "Examples:\n"
    "  firstseen create --data ./data kyc --window year --fields name,id_no \\\n"
    "      --normalise trim,width,zero-width,x-check-digit,id-15-to-18,name-dot\n"
    "  firstseen create --data ./data kyc_enc --window year --fields name_enc,id_enc \\\n"
    "      --normalise opaque --member-encoding concat\n"
    "  firstseen create --data ./data devices --window none --fields device_id \\\n"
    "      --normalise trim --expected 600000000";

}  // namespace

void RegisterCreate(CLI::App& app, Session& session) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* command = AddCommand(app, session, "create", "Create a set", kFooter,
                                 [&session, flags] { return Run(session, *flags); });
  AddSet(command, session)->required();
  AddDataOptions(command, session);
  command
      ->add_option("--window", flags->set.window,
                   "Period in which a member counts once: year, month, day, none")
      ->required()
      ->transform(OneOf(WindowKindNames()))
      ->type_name("KIND");
  command->add_option("--fields", flags->fields, "Names of the member's fields, in their order")
      ->required()
      ->delimiter(',')
      ->type_name("NAME,...");
  command->add_option("--normalise", flags->normalise, "Switches, see below, or opaque")
      ->required()
      ->type_name("SWITCHES");
  command
      ->add_option("--member-encoding", flags->set.member_encoding,
                   "fields: each with its length; concat: joined as an existing system did it")
      ->transform(OneOf(MemberEncodingNames()))
      ->type_name("fields|concat");
  command->add_option("--time-zone", flags->set.time_zone, "Where the windows begin and end")
      ->type_name("ZONE")
      ->capture_default_str();
  command->add_option("--bits", flags->set.bits, "Fingerprint width: 80, 88, 96, 112 or 128")
      ->check(CLI::IsMember({80, 88, 96, 112, 128}).description(""))
      ->type_name("N")
      ->capture_default_str();
  command->add_option("--expected", flags->set.expected, "Members expected in a window")
      ->check(WholeNumber())
      ->type_name("N");
  command
      ->add_option("--durability", flags->set.durability,
                   "fsync: answers leave after the disk has them; interval, none: weaker")
      ->transform(OneOf(DurabilityNames()))
      ->type_name("fsync|interval|none");
  AddJson(command, session);
}

}  // namespace firstseen::cli
