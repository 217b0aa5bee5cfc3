exports.first = (user) => {
  return user.name;
};
