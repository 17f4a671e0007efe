// Knows a card's security code by the name of its field: no such field may be kept, so none is ever read.

/** A whole word, as brands and providers call the code. */
const WORD = /^(?:c[vs][cv]|csc|cvn|cvd|cve|cav|cid)2?$|^cv2/

/** Within a word: no other word has these letters. */
const WITHIN = /cvv|cvc/

/** All letters in a row, however they are divided. */
const LETTERS = [
  /security(?:code|value|number|digits)/,
  /verification(?:value|code|number|digits)/,
  /card(?:verif|code$)/,
  /^cv(?:code|value|number|no)$/,
  /(?:^|card)(?:cvv|cvc|csc|cvn|cvd|cve|cav|cid)2?(?:code|value|number)?$/,
]

/** Is the field a card's security code, by its name or its path? */
export function isSecurityCode(name: string): boolean {
  const plain = name.normalize('NFKC').replace(/#\d+$/, '')
  // `card.cvc`, `card_cvv2`, `cardCvv`, `CIDCode`, `CVV Code`
  const words = plain
    .split(/[^A-Za-z0-9]+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/)
    .map(word => word.toLowerCase())
  if (words.some(word => WORD.test(word) || WITHIN.test(word))) return true
  const letters = words.join('')
  return LETTERS.some(form => form.test(letters))
}
