#include "ingest/decompress.h"

#include <sys/stat.h>

#include <random>
#include <thread>

#include "base/status.h"
#include "gmock/gmock.h"
#include "ingest/input_files.h"

namespace firstseen {
namespace {

using testing::HasSubstr;

absl::StatusOr<std::string> Decompress(const std::string& path, size_t step = 1000) {
  const std::vector<std::string> paths = {path};
  ASSIGN_OR_RETURN(const InputListing listing, ListInputs(FileSystem::Posix(), paths));
  ASSIGN_OR_RETURN(auto stream, OpenByteStream(FileSystem::Posix(), listing.files[0]));
  std::string result;
  std::string buffer(step, '\0');
  while (true) {
    ASSIGN_OR_RETURN(const size_t n, stream->Read(buffer.data(), step));
    result.append(buffer, 0, n);
    if (n < step) break;
  }
  EXPECT_EQ(stream->consumed_bytes(), listing.files[0].size_bytes);
  return result;
}

// Compressible, and longer than any buffer.
std::string Sample(size_t size) {
  std::mt19937 random(7);
  std::string text;
  while (text.size() < size) {
    text += std::to_string(random() % 1000);
    text += random() % 8 == 0 ? '\n' : '|';
  }
  return text;
}

struct Codec {
  std::string extension;
  std::string (*compress)(std::string_view);
  bool concatenates;
};
class CodecTest : public testing::TestWithParam<Codec> {
 protected:
  InputDirectory in_;
  std::string name_ = "000000_0" + GetParam().extension;
};

TEST_P(CodecTest, ReadsWhatWasCompressed) {
  for (const size_t size : {size_t{1}, size_t{1000}, size_t{3'000'000}}) {
    const std::string text = Sample(size);
    const auto result = Decompress(in_.Write(name_, GetParam().compress(text)), 70'001);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_TRUE(*result == text);
  }
}

TEST_P(CodecTest, AFileOfZeroBytesAndACompressedNothingAreEmpty) {
  EXPECT_EQ(*Decompress(in_.Write(name_, "")), "");
  EXPECT_EQ(*Decompress(in_.Write(name_, GetParam().compress(""))), "");
}

TEST_P(CodecTest, SeveralMembersAreReadOneAfterTheOther) {
  const std::string bytes =
      GetParam().compress("one\n") + GetParam().compress("") + GetParam().compress("two\n");
  const auto result = Decompress(in_.Write(name_, bytes));
  if (GetParam().concatenates) {
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(*result, "one\ntwo\n");
  } else {
    EXPECT_EQ(result.status().code(), absl::StatusCode::kDataLoss);
  }
}

TEST_P(CodecTest, EveryTruncationIsAnErrorThatNamesTheFile) {
  const std::string whole = GetParam().compress(Sample(400));
  for (size_t size = 1; size < whole.size(); ++size) {
    const auto result = Decompress(in_.Write(name_, whole.substr(0, size)));
    ASSERT_EQ(result.status().code(), absl::StatusCode::kDataLoss) << "cut at " << size;
    ASSERT_THAT(std::string(Message(result.status())), HasSubstr(name_));
  }
}

TEST_P(CodecTest, GarbageAfterTheEndIsAnError) {
  const auto result = Decompress(in_.Write(name_, GetParam().compress("row\n") + "garbage"));
  EXPECT_EQ(result.status().code(), absl::StatusCode::kDataLoss);
}

TEST_P(CodecTest, DamageInTheMiddleIsAnError) {
  std::string bytes = GetParam().compress(Sample(100'000));
  for (size_t i = bytes.size() / 2; i < bytes.size() / 2 + 200; ++i) bytes[i] = '\x55';
  EXPECT_EQ(Decompress(in_.Write(name_, bytes)).status().code(), absl::StatusCode::kDataLoss);
}

TEST_P(CodecTest, PlainContentUnderACompressedNameIsAnError) {
  const auto result = Decompress(in_.Write(name_, "a plain row|of text\n"));
  EXPECT_EQ(result.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(Message(result.status())), HasSubstr("the content is not"));
}

INSTANTIATE_TEST_SUITE_P(All, CodecTest,
                         testing::Values(Codec{".gz", Gzip, true}, Codec{".zst", Zstd, true},
                                         Codec{".bz2", Bzip2, true},
                                         Codec{".deflate", Zlib, false}),
                         [](const auto& info) { return info.param.extension.substr(1); });

TEST(DecompressTest, CompressedContentUnderAPlainNameIsRefused) {
  InputDirectory in;
  for (const std::string& bytes : {Gzip("x\n"), Zstd("x\n"), Bzip2("x\n")}) {
    EXPECT_EQ(Decompress(in.Write("000000_0", bytes)).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST(DecompressTest, FormatsThatCannotBeReadAreRefusedByName) {
  InputDirectory in;
  for (const char* name : {"part-0.snappy", "part-0.lz4", "part-0.parquet", "part-0.orc"}) {
    EXPECT_EQ(Decompress(in.Write(name, "PAR1")).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST(DecompressTest, ZeroBytesAfterGzipArePadding) {
  InputDirectory in;
  const std::string padded = Gzip("row\n") + std::string(1000, '\0');
  EXPECT_EQ(*Decompress(in.Write("a.gz", padded)), "row\n");
  EXPECT_FALSE(Decompress(in.Write("b.gz", padded + Gzip("row\n"))).ok());
}

TEST(DecompressTest, PlainFilesAreReadAsTheyAreAndSkipped) {
  InputDirectory in;
  const std::string text = Sample(100'000);
  const std::string path = in.Write("000000_0", text);
  EXPECT_TRUE(*Decompress(path) == text);
  for (const std::string& name : {path, in.Write("a.gz", Gzip(text))}) {
    auto stream = OpenByteStream(FileSystem::Posix(), InputFile{.path = name});
    ASSERT_TRUE(stream.ok());
    EXPECT_EQ(*(*stream)->Skip(3), 3u);
    EXPECT_EQ(*(*stream)->Skip(50'000), 50'000u);
    std::string next(10, '\0');
    EXPECT_EQ(*(*stream)->Read(next.data(), 10), 10u);
    EXPECT_EQ(next, text.substr(50'003, 10));
    EXPECT_EQ(*(*stream)->Skip(1'000'000), text.size() - 50'013);
  }
}

TEST(DecompressTest, ANamedPipeIsReadToItsEnd) {
  InputDirectory in;
  const std::string path = in / "pipe";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(path) << "one\ntwo\n"; });
  const std::vector<std::string> paths = {path};
  const auto listing = ListInputs(FileSystem::Posix(), paths);
  ASSERT_TRUE(listing.ok()) << listing.status();
  auto stream = OpenByteStream(FileSystem::Posix(), listing->files[0]);
  ASSERT_TRUE(stream.ok()) << stream.status();
  std::string text(100, '\0');
  const auto size = (*stream)->Read(text.data(), text.size());
  writer.join();
  ASSERT_TRUE(size.ok());
  EXPECT_EQ(text.substr(0, *size), "one\ntwo\n");
}

}  // namespace
}  // namespace firstseen
