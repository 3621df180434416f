// Numbers as the report writes them: three decimals, a sign on differences, a true minus, times in two units.

const MISSING = "–";
const NOISE = 1e-12, SMALL = 0.0005;  // as in verdict/sentences.py

const known = (value) => typeof value === "number" && Number.isFinite(value);

/** A size below SMALL with so many significant digits, as Python's format g writes it. */
function few(size, digits) {
  const [number, exponent] = size.toExponential(digits - 1).split("e-");
  return Number(exponent) > 4 ? `${Number(number)}e−${exponent.padStart(2, "0")}` : `${Number(size.toPrecision(digits))}`;
}

export function score(value) {
  if (!known(value)) return MISSING;
  const size = Math.abs(value);
  if (NOISE < size && size < SMALL) return (value < 0 ? "−" : "") + few(size, 3);
  return value.toFixed(size < 10 ? 3 : size < 100 ? 2 : 1).replace("-", "−");
}

export function signed(value) {
  if (!known(value)) return MISSING;
  const size = Math.abs(value);
  if (size <= NOISE) return "0.000";
  return (value > 0 ? "+" : "−") + (size < SMALL ? few(size, 2) : score(size));
}

export const interval = (low, high) => (known(low) && known(high) ? `${score(low)} to ${score(high)}` : MISSING);
export const signedInterval = (low, high) => (known(low) && known(high) ? `${signed(low)} to ${signed(high)}` : MISSING);

/** A whole number with separators. */
export const count = (value) => (known(value) ? Math.floor(value + 1e-6).toLocaleString("en-US") : "–");

export const numberOf = (value, noun) => `${count(value)} ${noun}${value === 1 ? "" : "s"}`;

/** The share that is done, in whole per cent, never 100 before the end. */
export function percent(done, total) {
  if (!known(done) || !(total > 0)) return 0;
  return Math.max(0, Math.min(100, Math.floor((100 * done) / total + 1e-6)));
}

export function duration(seconds) {
  if (!known(seconds)) return "";
  if (seconds < 60) return `${Math.max(1, Math.round(seconds))} s`;
  const minutes = Math.round(seconds / 60);
  if (seconds < 600) {
    const tens = 10 * Math.round(seconds / 10), rest = tens % 60;
    return `${Math.floor(tens / 60)} min${rest ? ` ${rest} s` : ""}`;
  }
  if (minutes < 60) return `${minutes} min`;
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)} h${minutes % 60 ? ` ${minutes % 60} min` : ""}`;
  return `${(minutes / 1440).toFixed(1)} days`;
}

export const left = (seconds) => (known(seconds) ? `about ${duration(seconds)} left` : "");

export function rate(value) {
  if (!known(value) || value <= 0) return "";
  const digits = Number(value.toPrecision(2));
  return `${digits.toLocaleString("en-US")} steps/s`;
}

/** A number on an axis whose ticks are `step` apart. */
export function tick(value, step) {
  const decimals = Math.max(0, Math.min(8, -Math.floor(Math.log10(step) + 1e-9)));
  return (Math.abs(value) < step / 1e6 ? 0 : value).toLocaleString("en-US", {
    minimumFractionDigits: decimals,
    maximumFractionDigits: decimals,
  }).replace("-", "−");
}

/** The time of an ISO date, as the reader's clock shows it, with the day if that is not today. */
export function moment(iso) {
  const date = new Date(iso ?? NaN);
  if (Number.isNaN(date.getTime())) return "";
  return date.toDateString() === new Date().toDateString() ? date.toLocaleTimeString() : date.toLocaleString();
}
