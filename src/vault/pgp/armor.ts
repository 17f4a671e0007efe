// Recognises an armored OpenPGP message without the OpenPGP library, which is loaded only for a message or a key.
const ARMOR = '-----BEGIN PGP MESSAGE-----'

/** Whether the text is a message in armor that isn't base64-encoded once more. */
export function isArmored(text: string): boolean {
  return text.trimStart().startsWith(ARMOR)
}
