// Card numbers of the test range 411111, as many as a test needs, each with its Luhn digit.

export function testPan(index: number): string {
  const body = `411111${String(index).padStart(9, '0')}`
  const sum = [...body].reverse().reduce((total, digit, place) => {
    const value = Number(digit) * (place % 2 === 0 ? 2 : 1)
    return total + (value > 9 ? value - 9 : value)
  }, 0)
  return `${body}${(10 - (sum % 10)) % 10}`
}
