#include "sample/people.h"

#include <array>
#include <numeric>

#include "absl/time/civil_time.h"
#include "base/check.h"
#include "fmt/format.h"

namespace firstseen::sample {
namespace {

constexpr uint64_t kSequences = 999;  // 001 to 999 for each area and day
// Spreads neighbouring person numbers over areas and days; a prime above every factor of count().
constexpr uint64_t kStride = 618'033'989;

constexpr auto kAreas = std::to_array<std::string_view>(
    {"110101", "110105", "120101", "130102", "140105", "150102", "152201", "210102", "210202",
     "220102", "230102", "310104", "310115", "320102", "320505", "330102", "330106", "340102",
     "350102", "350203", "360102", "370102", "370202", "410102", "410105", "420102", "420106",
     "430102", "430104", "440103", "440106", "440305", "450102", "460105", "500103", "500112",
     "510104", "510107", "520102", "530102", "540102", "610103", "610113", "620102", "630102",
     "640104", "650102", "653101", "653201", "810000", "820000", "830000"});

constexpr auto kSurnames = std::to_array<std::string_view>(
    {"王", "李", "张", "刘", "陈", "杨", "黄", "赵", "吴", "周",   "徐",   "孙",   "马",
     "朱", "胡", "郭", "何", "林", "罗", "高", "郑", "梁", "谢",   "宋",   "唐",   "许",
     "韩", "冯", "邓", "曹", "彭", "曾", "肖", "田", "董", "袁",   "潘",   "于",   "蒋",
     "蔡", "余", "杜", "叶", "程", "苏", "魏", "吕", "丁", "任",   "沈",   "姚",   "卢",
     "姜", "崔", "钟", "谭", "陆", "汪", "范", "金", "石", "廖",   "贾",   "夏",   "韦",
     "付", "方", "白", "邹", "孟", "熊", "秦", "邱", "江", "尹",   "薛",   "闫",   "段",
     "雷", "侯", "龙", "史", "陶", "黎", "贺", "顾", "毛", "郝",   "龚",   "邵",   "万",
     "钱", "严", "覃", "武", "戴", "莫", "孔", "向", "汤", "欧阳", "司马", "上官", "诸葛"});

// With some characters whose GBK form ends in the byte of '|' (珅 瑋 縷) or '\' (昞 誠 錦).
constexpr auto kGiven = std::to_array<std::string_view>(
    {"伟", "芳", "娜", "秀", "英", "敏", "静", "丽", "强", "磊", "军", "洋", "勇", "艳", "杰",
     "娟", "涛", "明", "超", "兰", "霞", "平", "刚", "桂", "文", "辉", "玲", "华", "红", "建",
     "国", "春", "梅", "志", "海", "燕", "波", "宁", "福", "生", "子", "涵", "梓", "轩", "宇",
     "浩", "然", "欣", "怡", "诗", "雨", "佳", "琪", "俊", "凯", "鹏", "飞", "晨", "曦", "思",
     "远", "安", "康", "乐", "晓", "东", "南", "西", "北", "玉", "珍", "凤", "莲", "云", "山",
     "川", "林", "森", "石", "松", "柏", "竹", "青", "青", "雪", "冰", "月", "星", "阳", "光",
     "珅", "瑋", "縷", "昞", "誠", "錦", "喆", "堃", "淼", "犇"});

constexpr auto kDottedParts = std::to_array<std::string_view>(
    {"阿卜杜拉", "买买提",   "吐尔逊",   "艾合买提", "古丽娜尔", "阿依古丽",     "热合曼",
     "玉素甫",   "伊力哈木", "迪丽热巴", "帕尔哈提", "努尔兰",   "阿不都热西提", "古丽巴哈尔",
     "卡德尔",   "吾守尔",   "赛买提",   "木合塔尔", "哈斯木",   "依米提",       "扎西",
     "次仁",     "尼玛",     "卓玛",     "亚历山大", "玛丽",     "约瑟夫",       "尤里耶维奇"});

constexpr std::string_view kDot = "\u00b7";
constexpr auto kOtherDots =
    std::to_array<std::string_view>({"\u2022", "\u30fb", "\u2027", "\u2219", "\u22c5", "\u25cf",
                                     "\uff65", "\uff0e", "\u2024", "."});

constexpr std::string_view kIdeographicSpace = "\u3000";
constexpr std::string_view kZeroWidthSpace = "\u200b";

std::vector<std::string> BirthDates() {
  std::vector<std::string> dates;
  for (absl::CivilDay day(1943, 1, 1); day < absl::CivilDay(2005, 1, 1); ++day) {
    dates.push_back(fmt::format("{:04}{:02}{:02}", day.year(), day.month(), day.day()));
  }
  return dates;
}

// The 18th character for the first 17 digits.
char CheckDigit(std::string_view digits) {
  constexpr int kWeights[17] = {7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2};
  int sum = 0;
  for (int i = 0; i < 17; ++i) sum += kWeights[i] * (digits[i] - '0');
  return "10X98765432"[sum % 11];
}

// U+FF10 to U+FF19 and U+FF38.
void AppendFullWidth(std::string_view text, std::string* out) {
  for (char c : text) {
    const int offset = c - '!';  // U+FF01 is full-width '!'
    const int code = 0xff01 + offset;
    out->push_back(static_cast<char>(0xe0 | (code >> 12)));
    out->push_back(static_cast<char>(0x80 | ((code >> 6) & 0x3f)));
    out->push_back(static_cast<char>(0x80 | (code & 0x3f)));
  }
}

}  // namespace

People::People(uint64_t seed) : seed_(seed), birth_dates_(BirthDates()) {
  FIRSTSEEN_CHECK(std::gcd(kStride, count()) == 1);
  offset_ = Mix(seed ^ 0x70656f706c65ull) % count();
}

uint64_t People::count() const { return kAreas.size() * birth_dates_.size() * kSequences; }

void People::Get(uint64_t index, Person* person) const {
  FIRSTSEEN_CHECK(index < count());
  uint64_t place = (index * kStride + offset_) % count();  // below 2^31 * 2^30: no overflow
  const uint64_t sequence = place % kSequences + 1;
  place /= kSequences;
  const std::string& birth = birth_dates_[place % birth_dates_.size()];
  const std::string_view area = kAreas[place / birth_dates_.size()];
  std::string& id = person->id_number;
  id.assign(area);
  id += birth;
  id.push_back(static_cast<char>('0' + sequence / 100));
  id.push_back(static_cast<char>('0' + sequence / 10 % 10));
  id.push_back(static_cast<char>('0' + sequence % 10));
  id.push_back(CheckDigit(id));
  MakeName(index, &person->name);
}

void People::MakeName(uint64_t index, std::string* name) const {
  Random random(seed_ ^ Mix(index + 1));
  name->clear();
  const uint64_t kind = random.Below(100);
  if (kind < 3) {  // two to six parts: names of fifty characters occur
    const uint64_t parts = kind == 0 ? 3 + random.Below(4) : 2;
    for (uint64_t i = 0; i < parts; ++i) {
      if (i > 0) *name += kDot;
      *name += kDottedParts[random.Below(kDottedParts.size())];
    }
    return;
  }
  *name += kSurnames[random.Below(kSurnames.size())];
  *name += kGiven[random.Below(kGiven.size())];
  if (kind < 80) *name += kGiven[random.Below(kGiven.size())];
}

void AppendName(std::string_view name, Random& random, std::string* out) {
  const uint64_t kind = random.Below(1000);
  const size_t dot = name.find(kDot);
  if (kind >= 400 || (dot == std::string_view::npos && kind >= 5)) {
    *out += name;
    return;
  }
  if (dot != std::string_view::npos) {
    const std::string_view other = kOtherDots[random.Below(kOtherDots.size())];
    size_t from = 0;
    for (size_t at = dot; at != std::string_view::npos; at = name.find(kDot, from)) {
      *out += name.substr(from, at - from);
      *out += other;
      from = at + kDot.size();
    }
    *out += name.substr(from);
  } else if (kind == 0) {  // every character of these names takes three bytes
    *out += name.substr(0, 3);
    *out += kZeroWidthSpace;
    *out += name.substr(3);
  } else if (kind < 3) {
    *out += name;
    *out += kIdeographicSpace;
  } else {
    *out += ' ';
    *out += name;
  }
}

void AppendIdNumber(std::string_view id_number, Random& random, std::string* out) {
  const uint64_t kind = random.Below(1000);
  // Old cards: people born before 2000, and no residence permits (8...).
  const bool has_old_form = id_number.substr(6, 2) == "19" && id_number[0] != '8';
  if (id_number.back() == 'X' && kind < 300) {
    *out += id_number.substr(0, 17);
    *out += 'x';
  } else if (kind < 5) {
    AppendFullWidth(id_number, out);
  } else if (kind < 15 && has_old_form) {
    *out += id_number.substr(0, 6);
    *out += id_number.substr(8, 9);
  } else if (kind < 18) {
    *out += id_number;
    *out += ' ';
  } else {
    *out += id_number;
  }
}

}  // namespace firstseen::sample
