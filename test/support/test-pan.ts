// Makes card numbers that begin with 411111 (Visa, 16 digits) or 378282 (American Express, 15 digits), each with its
// Luhn digit.

export const testPan = (index: number): string => withLuhn(`411111${String(index).padStart(9, '0')}`)

export const testAmex = (index: number): string => withLuhn(`378282${String(index).padStart(8, '0')}`)

function withLuhn(body: string): string {
  const sum = [...body].reverse().reduce((total, digit, place) => {
    const value = Number(digit) * (place % 2 === 0 ? 2 : 1)
    return total + (value > 9 ? value - 9 : value)
  }, 0)
  return `${body}${(10 - (sum % 10)) % 10}`
}
