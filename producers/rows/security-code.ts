// Recognises a card's security code by the name of its field. Such a field must not be stored, so it is never read.

/** Names that brands and providers use for the code, as a whole word. */
const WORD = /^(?:c[vs][cv]|csc|cvn|cvd|cve|cav|cid)2?$|^cv2/

/** Letters that occur within no other word. */
const WITHIN = /cvv|cvc/

/** Forms of the name when its letters are joined, without separators. */
const LETTERS = [
  /security(?:code|value|number|digits)/,
  /verification(?:value|code|number|digits)/,
  /card(?:verif|code$)/,
  /^cv(?:code|value|number|no)$/,
  /(?:^|card)(?:cvv|cvc|csc|cvn|cvd|cve|cav|cid)2?(?:code|value|number)?$/,
]

/** Whether the field is a card's security code, by its name or path. */
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
