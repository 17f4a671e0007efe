// Names as cardholders of the world have them, by script: given names and family names, which are combined. None has more than
// 30 UTF-16 units, the most that a token takes.
import type { Draw } from './card.ts'

interface NameList {
  given: readonly string[]
  family: readonly string[]
  /** Whether the family name comes first, and whether a blank stands between. */
  order?: 'family first' | 'joined'
  form?: 'NFC' | 'NFD'
}

export const ASCII: NameList = {
  given: [
    'ANNA',
    'BEN',
    'CLARA',
    'DAVID',
    'EMMA',
    'FATIMA',
    'GEORG',
    'HANA',
    'IVAN',
    'JULIA',
    'KWAME',
    'LUCY',
    'MARCO',
  ],
  family: ['MEYER', 'BAKER', 'OKAFOR', 'PETROV', 'QUINN', 'ROSSI', 'SATO', 'TAYLOR', 'VARGA', 'WEISS', 'YOUNG'],
}

const VIETNAMESE: NameList = {
  given: ['Văn Đức', 'Thị Hồng', 'Minh Tuấn', 'Thị Ánh', 'Quốc Bảo', 'Thanh Thủy'],
  family: ['Nguyễn', 'Trần', 'Lê', 'Phạm', 'Huỳnh', 'Võ', 'Đặng'],
  order: 'family first',
}

export const NAMES = {
  latin: {
    given: ['José', 'Zoë', 'Łukasz', 'Søren', 'Jürgen', 'Çağla', 'Anaïs', 'Ştefan', 'Ñico', 'Ágnes'],
    family: ['Müller', 'Dvořák', 'Wałęsa', 'Øberg', 'Şahin', 'Núñez', 'Lefèvre', 'Kovács', 'Þórsson'],
  },
  'vietnamese-nfc': { ...VIETNAMESE, form: 'NFC' },
  'vietnamese-nfd': { ...VIETNAMESE, form: 'NFD' },
  cyrillic: {
    given: ['Анна', 'Дмитрий', 'Олександр', 'Ірина', 'Светлана', 'Ђорђе', 'Мария'],
    family: ['Иванова', 'Шевченко', 'Кузнецов', 'Јовановић', 'Петрова', 'Щербак'],
  },
  greek: {
    given: ['Ελένη', 'Γιώργος', 'Μαρία', 'Κωνσταντίνος', 'Αθηνά'],
    family: ['Παπαδόπουλος', 'Οικονόμου', 'Νικολάου', 'Γεωργίου'],
  },
  arabic: {
    given: ['محمد', 'فاطمة', 'أحمد', 'عائشة', 'يوسف', 'مريم'],
    family: ['العلي', 'حسن', 'الخطيب', 'منصور', 'عبد الله'],
  },
  hebrew: {
    given: ['יוסף', 'מרים', 'דוד', 'נועה', 'אברהם', 'שרה'],
    family: ['כהן', 'לוי', 'מזרחי', 'פרץ', 'ביטון'],
  },
  devanagari: {
    given: ['प्रिया', 'राहुल', 'अनुष्का', 'विक्रम', 'लक्ष्मी'],
    family: ['शर्मा', 'सिंह', 'कुलकर्णी', 'चौधरी', 'जोशी'],
  },
  thai: {
    given: ['สมชาย', 'สุดารัตน์', 'ณัฐพล', 'วิไล', 'ประเสริฐ'],
    family: ['แสงทอง', 'ศรีสุข', 'วงศ์สวัสดิ์', 'ทองดี'],
  },
  han: {
    given: ['伟', '秀英', '志强', '美玲', '浩然', '欣怡', '建國'],
    family: ['王', '李', '张', '陳', '歐陽', '黃', '诸葛'],
    order: 'joined',
  },
  kana: {
    given: ['ハナコ', 'タロウ', 'さくら', 'ﾕｳｷ', 'ケンジ', 'ゆうと'],
    family: ['ヤマダ', 'サトウ', 'スズキ', 'ﾀﾅｶ', 'たかはし'],
    order: 'family first',
  },
  hangul: {
    given: ['민준', '서연', '지훈', '하은', '도윤', '수빈'],
    family: ['김', '이', '박', '최', '정', '황보'],
    order: 'joined',
  },
  emoji: {
    given: ['Anna 🌸', 'Ben 🚀', 'Clara ❤️', '🐻 David', 'Emma 👩‍💻'],
    family: ['Meyer', 'Baker', 'Rossi ⭐', 'Young'],
  },
  apostrophe: {
    given: ['Siobhán', 'Niamh', 'Marc', 'D’Arcy', 'Chiara'],
    family: ['O’Neill', 'D’Angelo', 'O’Brien', 'L’Hôpital', 'N’Diaye'],
  },
  digit: {
    given: ['ANNA', 'BEN', 'CLARA', 'DAVID', 'ROOM 12 EMMA'],
    family: ['MEYER 2ND', 'BAKER 3', 'ROSSI JR 2', 'FILIALE 0417', 'DEPT 88'],
  },
} as const satisfies Record<string, NameList>

export type Script = keyof typeof NAMES
export const SCRIPTS = Object.keys(NAMES) as Script[]

export function nameOf({ given, family, order, form }: NameList, draw: Draw): string {
  const [first, last] = [draw.from(given), draw.from(family)]
  const name =
    order === 'joined' ? `${last}${first}` : order === 'family first' ? `${last} ${first}` : `${first} ${last}`
  return form === undefined ? name : name.normalize(form)
}
