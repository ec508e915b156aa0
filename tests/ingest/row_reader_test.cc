#include "ingest/row_reader.h"

#include <random>

#include "base/status.h"
#include "gmock/gmock.h"
#include "ingest/input_files.h"

namespace firstseen {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct OwnedLine {
  std::string text;
  std::string raw;
  uint64_t number;
  uint64_t offset;
  bool too_long;
};

std::vector<OwnedLine> Lines(const std::string& path) {
  auto reader = LineReader::Open(FileSystem::Posix(), path);
  EXPECT_TRUE(reader.ok()) << reader.status();
  std::vector<OwnedLine> lines;
  Line line;
  while (true) {
    const auto more = (*reader)->Next(&line);
    EXPECT_TRUE(more.ok()) << more.status();
    if (!more.ok() || !*more) return lines;
    lines.push_back(
        {std::string(line.text), std::string(line.raw), line.number, line.offset, line.too_long});
  }
}

std::vector<std::string> Texts(std::string_view content) {
  InputDirectory in;
  std::vector<std::string> texts;
  for (const OwnedLine& line : Lines(in.Write("f", content))) texts.push_back(line.text);
  return texts;
}

TEST(LineReaderTest, LinesEndWithLfAndCrlfIsTolerated) {
  EXPECT_THAT(Texts(""), IsEmpty());
  EXPECT_THAT(Texts("\n"), ElementsAre(""));
  EXPECT_THAT(Texts("a"), ElementsAre("a"));
  EXPECT_THAT(Texts("a\n"), ElementsAre("a"));
  EXPECT_THAT(Texts("a\r\nb\n\r\nc"), ElementsAre("a", "b", "", "c"));
  EXPECT_THAT(Texts("a\rb\r\r\n"), ElementsAre("a\rb\r"));
}

TEST(LineReaderTest, AByteOrderMarkIsDroppedAtTheStartOnly) {
  EXPECT_THAT(Texts("\xef\xbb\xbf"
                    "a\n\xef\xbb\xbf"
                    "b\n"),
              ElementsAre("a",
                          "\xef\xbb\xbf"
                          "b"));
  EXPECT_THAT(Texts("\x84\x31\x95\x33"
                    "a\n"),
              ElementsAre("a"));
  EXPECT_THAT(Texts("\xef\xbb\xbf"), ElementsAre(""));
}

TEST(LineReaderTest, NumbersAndOffsetsAreThoseOfTheFile) {
  InputDirectory in;
  const auto lines = Lines(in.Write("f",
                                    "\xef\xbb\xbf"
                                    "one\r\n\ntwo"));
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].number, 1u);
  EXPECT_EQ(lines[0].offset, 0u);
  EXPECT_EQ(lines[0].raw, "one\r");
  EXPECT_EQ(lines[2].number, 3u);
  EXPECT_EQ(lines[2].offset, 9u);
}

TEST(LineReaderTest, LinesAcrossBlocksAreWhole) {
  InputDirectory in;
  std::string content;
  for (int i = 0; content.size() < 3 * kBlockBytes; ++i) {
    content += std::to_string(i) + std::string(static_cast<size_t>(i % 97), 'x') + "\n";
  }
  const auto lines = Lines(in.Write("f.gz", Gzip(content)));
  for (size_t i = 0; i < lines.size(); ++i) {
    ASSERT_EQ(lines[i].text, std::to_string(i) + std::string(i % 97, 'x'));
    ASSERT_EQ(lines[i].number, i + 1);
    ASSERT_EQ(content.compare(lines[i].offset, lines[i].text.size(), lines[i].text), 0);
  }
  EXPECT_EQ(lines.back().offset + lines.back().raw.size() + 1, content.size());
}

TEST(LineReaderTest, ALineOverTheLimitIsOneLongLineHoweverLongItIs) {
  InputDirectory in;
  for (const size_t size : {kLineBytesMax, kLineBytesMax + 1, kBlockBytes - 7, kBlockBytes - 6,
                            kBlockBytes - 5, kBlockBytes, 5 * kBlockBytes + 3}) {
    for (const bool last : {false, true}) {
      const std::string content = "first\n" + std::string(size, 'x') + (last ? "" : "\nnext\nlast");
      const auto lines = Lines(in.Write("f", content));
      ASSERT_EQ(lines.size(), last ? 2u : 4u) << size;
      EXPECT_EQ(lines[1].too_long, size > kLineBytesMax) << size;
      EXPECT_GE(lines[1].raw.size(), kLineBytesMax);
      if (!last) {
        EXPECT_EQ(lines[2].text, "next");
        EXPECT_EQ(lines[2].number, 3u);
        EXPECT_EQ(lines[2].offset, size + 7);
        EXPECT_FALSE(lines[2].too_long);
        EXPECT_EQ(lines[3].text, "last");
      }
    }
  }
}

TEST(BlockReaderTest, ALaterRunFromABlocksEndFindsTheSameBlocks) {
  InputDirectory in;
  std::string content(2'500'000, 'z');
  content += '\n';
  std::mt19937 random(11);
  while (content.size() < 5 * kBlockBytes) {
    content.append(random() % 3000, static_cast<char>('a' + random() % 26));
    content += '\n';
  }
  const InputFile file{.path = in.Write("f.gz", Gzip(content))};
  const auto read = [&](uint64_t offset, uint64_t line) {
    BlockReader reader(*OpenByteStream(FileSystem::Posix(), file), file.path);
    EXPECT_TRUE(reader.SkipTo(offset, line).ok());
    std::vector<LineBlock> blocks;
    std::vector<char> buffer(kBlockBytes);
    LineBlock block;
    while (*reader.Next(buffer.data(), &block)) {
      if (!block.too_long) {
        EXPECT_EQ(content.compare(block.offset, block.bytes.size(), block.bytes), 0);
      }
      blocks.push_back(block);
    }
    return blocks;
  };
  const std::vector<LineBlock> whole = read(0, 1);
  ASSERT_GT(whole.size(), 4u);
  for (size_t i = 0; i < whole.size(); ++i) {
    const std::vector<LineBlock> rest = read(whole[i].end_offset, whole[i].end_line);
    ASSERT_EQ(rest.size(), whole.size() - i - 1);
    for (size_t j = 0; j < rest.size(); ++j) {
      EXPECT_EQ(rest[j].offset, whole[i + 1 + j].offset);
      EXPECT_EQ(rest[j].end_offset, whole[i + 1 + j].end_offset);
      EXPECT_EQ(rest[j].line, whole[i + 1 + j].line);
    }
  }
}

TEST(BlockReaderTest, SkippingBeyondTheEndIsAnError) {
  InputDirectory in;
  const InputFile file{.path = in.Write("f", "short\n")};
  BlockReader reader(*OpenByteStream(FileSystem::Posix(), file), file.path);
  EXPECT_EQ(reader.SkipTo(7, 2).code(), absl::StatusCode::kDataLoss);
}

// ---- Rows.

std::string Show(const Field& field) { return field.null ? "NULL" : std::string(field.text); }

std::vector<std::string> Split(RowFormat format, std::string_view line) {
  auto parser = RowParser::Create(format);
  EXPECT_TRUE(parser.ok()) << parser.status();
  Field fields[16];
  const auto count = parser->Parse(line, fields);
  if (!count.ok()) return {"ERROR"};
  std::vector<std::string> result;
  for (size_t i = 0; i < *count; ++i) result.push_back(Show(fields[i]));
  return result;
}

TEST(RowParserTest, SplitsAtTheDelimiter) {
  EXPECT_THAT(Split({.delimiter = '|'}, "a|b"), ElementsAre("a", "b"));
  EXPECT_THAT(Split({.delimiter = '|'}, ""), ElementsAre(""));
  EXPECT_THAT(Split({.delimiter = '|'}, "|"), ElementsAre("", ""));
  EXPECT_THAT(Split({},
                    "a|b\x01"
                    "c"),
              ElementsAre("a|b", "c"));
  EXPECT_THAT(Split({.delimiter = '\t'}, "a\tb\t"), ElementsAre("a", "b", ""));
}

TEST(RowParserTest, FieldsBeyondTheRoomAreCounted) {
  auto parser = RowParser::Create({.delimiter = '|'});
  Field fields[2];
  EXPECT_EQ(*parser->Parse("a|b|c|d", fields), 4u);
  EXPECT_EQ(fields[1].text, "b");
}

TEST(RowParserTest, BackslashNIsNullAndOnlyAsAWholeField) {
  EXPECT_THAT(Split({.delimiter = '|'}, "\\N|a\\N|\\N"), ElementsAre("NULL", "a\\N", "NULL"));
  EXPECT_THAT(Split({.delimiter = '|', .escape = '\\'}, "\\N|\\\\N|N"),
              ElementsAre("NULL", "\\N", "N"));
}

TEST(RowParserTest, WithoutEscapedByABackslashIsAnOrdinaryCharacter) {
  EXPECT_THAT(Split({.delimiter = '|'}, "a\\|b"), ElementsAre("a\\", "b"));
}

TEST(RowParserTest, WithEscapedByTheNextCharacterBelongsToTheValue) {
  const RowFormat format = {.delimiter = '|', .escape = '\\'};
  EXPECT_THAT(Split(format, "a\\|b|c"), ElementsAre("a|b", "c"));
  EXPECT_THAT(Split(format, "a\\\\|b"), ElementsAre("a\\", "b"));
  EXPECT_THAT(Split(format, "a\\nb\\rc|\\x"), ElementsAre("a\nb\rc", "x"));
  EXPECT_THAT(Split(format, "a|b\\"), ElementsAre("a", "b\\"));
  EXPECT_THAT(Split(format, "a|\\|"), ElementsAre("a", "|"));
  EXPECT_THAT(Split({.delimiter = '|', .escape = '~'}, "a~|b|\\N"), ElementsAre("a|b", "NULL"));
}

TEST(RowParserTest, Gb18030IsDecodedBeforeItIsSplit) {
  // 0x8E7C and 0x815C are characters whose trail bytes are '|' and '\'.
  const RowFormat format = {.delimiter = '|', .encoding = TextEncoding::kGb18030};
  EXPECT_THAT(Split(format, "\x8e\x7c\x81\x5c|x"), ElementsAre("\xe5\xb7\xaa\xe4\xb9\x97", "x"));
  EXPECT_THAT(
      Split({.delimiter = '|', .escape = '\\', .encoding = TextEncoding::kGb18030}, "\x81\x5c|x"),
      ElementsAre("\xe4\xb9\x97", "x"));
  EXPECT_THAT(Split(format, "\xd5\xc5\xa1\xa4|x"), ElementsAre("\xe5\xbc\xa0\xc2\xb7", "x"));
  EXPECT_THAT(Split(format, "\x81\x30\x81\x30"), ElementsAre("\xc2\x80"));  // four bytes
  EXPECT_THAT(Split(format, "ab|\xff\xff"), ElementsAre("ERROR"));
  EXPECT_THAT(Split(format, "ab|\x81"), ElementsAre("ERROR"));
}

TEST(RowParserTest, ABadLineDoesNotSpoilTheNext) {
  auto parser = RowParser::Create({.delimiter = '|', .encoding = TextEncoding::kGb18030});
  Field fields[2];
  EXPECT_FALSE(parser->Parse("\x81", fields).ok());
  ASSERT_EQ(*parser->Parse("\xd5\xc5|b", fields), 2u);
  EXPECT_EQ(fields[0].text, "\xe5\xbc\xa0");
}

TEST(RowParserTest, DecodedFieldsStayValidUntilReset) {
  auto parser = RowParser::Create({.delimiter = '|', .encoding = TextEncoding::kGb18030});
  std::vector<Field> fields(20'000);
  for (Field& field : fields) ASSERT_EQ(*parser->Parse("\xd5\xc5", std::span(&field, 1)), 1u);
  for (const Field& field : fields) ASSERT_EQ(field.text, "\xe5\xbc\xa0");
  parser->Reset();
  EXPECT_EQ(*parser->Parse("\xd5\xc5", std::span(fields).first(1)), 1u);
}

TEST(RowParserTest, BlankLinesAreEmptyOrWhiteSpaceThatIsNoDelimiter) {
  auto pipe = RowParser::Create({.delimiter = '|'});
  EXPECT_TRUE(pipe->IsBlank(""));
  EXPECT_TRUE(pipe->IsBlank(" \t "));
  EXPECT_FALSE(pipe->IsBlank("|"));
  EXPECT_FALSE(pipe->IsBlank(" a"));
  EXPECT_FALSE(RowParser::Create({.delimiter = '\t'})->IsBlank("\t"));
}

TEST(RowParserTest, DelimitersAreOneAsciiCharacterOrItsName) {
  EXPECT_EQ(*ParseDelimiter("|"), '|');
  EXPECT_EQ(*ParseDelimiter("tab"), '\t');
  EXPECT_EQ(*ParseDelimiter("\\t"), '\t');
  EXPECT_EQ(*ParseDelimiter("\\x01"), '\x01');
  EXPECT_EQ(*ParseDelimiter("\\001"), '\x01');
  EXPECT_EQ(*ParseDelimiter("^A"), '\x01');
  EXPECT_EQ(*ParseDelimiter("\\"), '\\');
  EXPECT_EQ(*ParseDelimiter("\\x7C"), '|');
  EXPECT_EQ(*ParseDelimiter("\x01"), '\x01');
  for (const char* bad :
       {"", "||", "\n", "\\x0a", "\\xff", "\\x", "\\xzz", "\\099", "\xe4\xb8\x80", "^J"}) {
    EXPECT_FALSE(ParseDelimiter(bad).ok()) << bad;
  }
  EXPECT_FALSE(RowParser::Create({.delimiter = '|', .escape = '|'}).ok());
  EXPECT_FALSE(RowParser::Create({.delimiter = '\n'}).ok());
  EXPECT_FALSE(RowParser::Create({.delimiter = '\x80'}).ok());
}

// ---- Encodings.

TEST(DecodeTest, Utf8IsValidatedAsRfc3629Says) {
  for (const char* good :
       {"", "abc", "\xc2\x80", "\xe4\xb8\xad\xe6\x96\x87", "\xf0\x9f\x98\x80", "\xed\x9f\xbf",
        "\xee\x80\x80", "\xf4\x8f\xbf\xbf", "12345678\xc2\xb7"}) {
    EXPECT_TRUE(IsValidUtf8(good)) << good;
  }
  for (const char* bad : {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xed\xa0\x80",
                          "\xf0\x80\x80\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe4\xb8",
                          "12345678\xc2", "\xd5\xc5\xc8\xfd", "\xff"}) {
    EXPECT_FALSE(IsValidUtf8(bad)) << bad;
  }
}

TEST(DecodeTest, AsciiIsToldFromTheRestAtEveryPosition) {
  for (size_t size = 0; size < 100; ++size) {
    std::string text(size, 'a');
    EXPECT_TRUE(IsAscii(text));
    for (size_t i = 0; i < size; ++i) {
      text[i] = '\x80';
      EXPECT_FALSE(IsAscii(text));
      text[i] = 'a';
    }
  }
}

TEST(DecodeTest, EncodingsHaveTheirUsualNames) {
  EXPECT_EQ(*ParseTextEncoding("UTF-8"), TextEncoding::kUtf8);
  EXPECT_EQ(*ParseTextEncoding("GBK"), TextEncoding::kGb18030);
  EXPECT_FALSE(ParseTextEncoding("latin1").ok());
}

}  // namespace
}  // namespace firstseen
